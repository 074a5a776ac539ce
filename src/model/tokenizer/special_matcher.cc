#include "model/tokenizer/special_matcher.h"

#include <algorithm>

namespace memdecay {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

}  // namespace

SpecialMatcher::SpecialMatcher(const TokenText& text) : text_(&text) {
  const auto count = static_cast<TokenId>(text.size());
  for (TokenId id = 0; id < count; ++id) {
    const TokenType type = text.type(id);
    if (text.bytes(id).empty()) continue;
    if (type == TokenType::kControl || type == TokenType::kUnknown) {
      entries_.push_back({id, Class::kControl});
    } else if (type == TokenType::kUserDefined) {
      entries_.push_back({id, is_blank(text.bytes(id)) ? Class::kBlank : Class::kMarker});
    }
  }
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return bytes(a) != bytes(b) ? bytes(a) < bytes(b) : a.id < b.id;
  });
  for (const Entry& entry : entries_) {
    const auto byte = static_cast<unsigned char>(bytes(entry)[0]);
    ++first_[byte + std::size_t{1}];
    if (entry.kind != Class::kControl) starts_always_[byte] = true;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

std::optional<TokenId> SpecialMatcher::longest_at(std::string_view text, std::size_t inside,
                                                  bool markers_in_ranges_only) const {
  std::optional<TokenId> longest;
  const auto byte = static_cast<unsigned char>(text[0]);
  auto low = entries_.begin() + first_[byte];
  auto high = entries_.begin() + first_[byte + std::size_t{1}];
  for (std::size_t depth = 1; low != high; ++depth) {
    for (; low != high && bytes(*low).size() == depth; ++low) {
      const bool anywhere =
          low->kind == Class::kBlank || (low->kind == Class::kMarker && !markers_in_ranges_only);
      const bool first_of_its_text = !longest || bytes(*low).size() > text_->length(*longest);
      if ((anywhere || depth <= inside) && first_of_its_text) longest = low->id;
    }
    if (depth == text.size()) break;
    const auto next = static_cast<unsigned char>(text[depth]);
    const auto byte_at = [&](const Entry& entry) {
      return static_cast<unsigned char>(bytes(entry)[depth]);
    };
    low = std::partition_point(low, high, [&](const Entry& e) { return byte_at(e) < next; });
    high = std::partition_point(low, high, [&](const Entry& e) { return byte_at(e) == next; });
  }
  return longest;
}

std::optional<Token> SpecialMatcher::find(std::string_view text, std::size_t from,
                                          const Permissions& permissions,
                                          std::size_t& range) const {
  if (entries_.empty()) return std::nullopt;
  const auto ranges = permissions.control_ranges;
  for (std::size_t at = from; at < text.size(); ++at) {
    while (range < ranges.size() && ranges[range].end <= at) ++range;
    std::size_t inside = permissions.control_everywhere ? text.size() - at : 0;
    if (range < ranges.size() && ranges[range].begin <= at) inside = ranges[range].end - at;
    const auto byte = static_cast<unsigned char>(text[at]);
    if (first_[byte] == first_[byte + std::size_t{1}]) continue;
    if (inside == 0 && !starts_always_[byte]) continue;
    const auto id = longest_at(text.substr(at), inside, permissions.markers_in_ranges_only);
    if (!id) continue;
    const auto begin = static_cast<std::uint32_t>(at);
    return Token{*id, begin, begin + text_->length(*id)};
  }
  return std::nullopt;
}

TokenId SpecialMatcher::find_exact(std::string_view text) const {
  const auto at = std::partition_point(entries_.begin(), entries_.end(),
                                       [&](const Entry& entry) { return bytes(entry) < text; });
  return at != entries_.end() && bytes(*at) == text ? at->id : -1;
}

}  // namespace memdecay
