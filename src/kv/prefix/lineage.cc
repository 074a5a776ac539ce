#include "kv/prefix/lineage.h"

#include <openssl/evp.h>

#include <utility>

#include "core/check.h"

namespace memdecay {
namespace {

void append_number(std::string& bytes, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

void append_field(std::string& bytes, std::string_view field) {
  append_number(bytes, field.size(), 8);
  bytes += field;
}

std::string group_bytes(const std::vector<LineageGroup>& groups) {
  std::string bytes;
  for (const LineageGroup& group : groups)
    for (const std::int64_t number :
         {std::int64_t{group.layout.layers}, std::int64_t{group.layout.kv_heads},
          std::int64_t{group.layout.head_dim}, std::int64_t{group.layout.page_tokens},
          std::int64_t{static_cast<int>(group.layout.format)}, std::int64_t{group.window}})
      append_number(bytes, static_cast<std::uint64_t>(number), 4);
  return bytes;
}

std::string_view as_text(const LineageKey& key) {
  return {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()};
}

}  // namespace

/// OpenSSL's SHA-256, looked up once; its failures are out of memory or a broken installation.
class LineageHasher::Digest {
 public:
  Digest()
      : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr), &EVP_MD_free),
        state_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    MEMDECAY_CHECK(algorithm_ != nullptr && state_ != nullptr);
  }

  LineageKey of(std::string_view bytes) {
    LineageKey key;
    unsigned int length = 0;
    const bool done = EVP_DigestInit_ex2(state_.get(), algorithm_.get(), nullptr) == 1 &&
                      EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()) == 1 &&
                      EVP_DigestFinal_ex(state_.get(), key.bytes.data(), &length) == 1;
    MEMDECAY_CHECK(done && length == key.bytes.size());
    return key;
  }

  std::string scratch;  // keeps its memory from one page to the next

 private:
  std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> algorithm_;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state_;
};

std::uint64_t LineageKey::leading_bits() const {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) bits = bits << 8 | bytes[i];
  return bits;
}

std::string LineageKey::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 0xF]);
  }
  return text;
}

LineageHasher::LineageHasher(LineageModel model)
    : model_(std::move(model)), digest_(std::make_unique<Digest>()) {}

LineageHasher::~LineageHasher() = default;

LineageKey LineageHasher::root(const PrefixScope& scope) const {
  std::string& bytes = digest_->scratch;
  bytes.clear();
  append_field(bytes, "memdecay root 1");
  append_field(bytes, model_.fingerprint);
  append_field(bytes, group_bytes(model_.groups));
  append_field(bytes, scope.salt);
  append_field(bytes, scope.adapter);
  return digest_->of(bytes);
}

LineageKey LineageHasher::child(const LineageKey& parent, std::span<const TokenId> tokens) const {
  std::string& bytes = digest_->scratch;
  bytes.clear();
  append_field(bytes, "memdecay page 1");
  append_field(bytes, as_text(parent));
  append_number(bytes, tokens.size() * sizeof(TokenId), 8);
  for (const TokenId token : tokens)
    append_number(bytes, static_cast<std::uint32_t>(token), sizeof(TokenId));
  return digest_->of(bytes);
}

}  // namespace memdecay
