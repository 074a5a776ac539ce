// Text: an immutable-by-habit string of code points that knows where each piece came from.
//
// Not a byte string: indices count code points, as in Python. Invariants: pieces_ are adjacent,
// their ends grow strictly, the last end equals size(); neighbours have different origins. Free of
// threads. append is O(length), slice is O(length + log pieces).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memdecay::jinja {

/// Index into Runtime's table of origins. 0 is the template itself.
using OriginId = std::uint32_t;
inline constexpr OriginId kTemplateOrigin = 0;

/// The code points of a UTF-8 string; nothing where the bytes are not UTF-8.
std::optional<std::u32string> decode_utf8(std::string_view bytes);
void append_utf8(std::string* out, char32_t code);
std::string encode_utf8(std::u32string_view chars);
/// Code points of an ASCII literal.
std::u32string widen(std::string_view ascii);

class Text {
 public:
  struct Piece {
    std::size_t end;
    OriginId origin;
  };

  Text() = default;
  Text(std::u32string chars, OriginId origin);

  const std::u32string& chars() const { return chars_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::size_t size() const { return chars_.size(); }
  bool empty() const { return chars_.empty(); }
  /// The origin of the code point at `index`; of the whole where empty: the template.
  OriginId origin_at(std::size_t index) const;

  void append(std::u32string_view chars, OriginId origin);
  void append(char32_t code, OriginId origin);
  void append(const Text& other) { append_range(other, 0, other.size()); }
  /// REQUIRES: begin <= end <= other.size().
  void append_range(const Text& other, std::size_t begin, std::size_t end);
  Text slice(std::size_t begin, std::size_t end) const;
  void clear();

  /// Equality of characters; origins do not count.
  friend bool operator==(const Text& a, const Text& b) { return a.chars_ == b.chars_; }

 private:
  void extend_pieces(std::size_t end, OriginId origin);

  std::u32string chars_;
  std::vector<Piece> pieces_;
};

}  // namespace memdecay::jinja
