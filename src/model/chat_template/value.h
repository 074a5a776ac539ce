// Value: what a template expression evaluates to, with Python's types.
//
// Strings share immutable Text; containers and callables are Objects owned by the Runtime of one
// render, so a Value that holds one must not outlive it (and cycles cannot leak). Constants of a
// parsed template hold no Object. A Value knows the origin of what it would print. One thread at a
// time per Runtime; copying is cheap.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "model/chat_template/text.h"

namespace memdecay::jinja {

class Runtime;
class Value;

enum class Kind : std::uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,  ///< dict.keys(), .values(), .items(): a snapshot, since dicts never change
  kIterator,  ///< what map, select, reverse... return: may be walked once
  kRange,
  kNamespace,
  kCallable,
  kLoop,
};

/// Python's name of a kind, as its error messages show it.
const char* kind_name(Kind kind);

/// Whatever the Runtime owns for the length of one render.
struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
};

struct SequenceObject;
struct DictObject;
struct RangeObject;
struct LoopObject;
class Callable;

class Value {
 public:
  Value() = default;  ///< None
  static Value none(OriginId origin = kTemplateOrigin);
  static Value boolean(bool value, OriginId origin = kTemplateOrigin);
  static Value integer(std::int64_t value, OriginId origin = kTemplateOrigin);
  static Value floating(double value, OriginId origin = kTemplateOrigin);
  static Value string(Text text);
  static Value string(std::u32string chars, OriginId origin = kTemplateOrigin);
  /// `message` says what is missing; it is raised when the value is used.
  static Value undefined(const std::string& message);
  static Value of(Kind kind, SequenceObject* object);
  static Value of(DictObject* object);
  static Value name_space(DictObject* object);
  static Value of(RangeObject* object);
  static Value of(LoopObject* object);
  static Value of(Callable* object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  bool is_sequence_object() const {
    return kind_ == Kind::kList || kind_ == Kind::kTuple || kind_ == Kind::kDictView ||
           kind_ == Kind::kIterator;
  }

  bool as_bool() const { return integer_ != 0; }
  std::int64_t as_int() const { return integer_; }  ///< REQUIRES: is_integral()
  double as_float() const {                         ///< REQUIRES: is_number()
    return kind_ == Kind::kFloat ? floating_ : static_cast<double>(integer_);
  }
  const Text& text() const {
    MEMDECAY_DCHECK(is_string());
    return *text_;
  }
  const std::u32string& chars() const { return text().chars(); }
  std::string undefined_message() const { return encode_utf8(text_->chars()); }
  SequenceObject& sequence() const;
  DictObject& dict() const;  ///< REQUIRES: a dict or a namespace
  RangeObject& range() const;
  LoopObject& loop() const;
  Callable& callable() const;
  const Object* object() const { return object_; }

  /// What a printed scalar or the brackets of a container count as.
  OriginId origin() const { return origin_; }
  Value with_origin(OriginId origin) const;
  /// A string that counts as HTML already: `+` escapes what is added to it.
  bool is_markup() const { return markup_; }
  Value as_markup(bool markup = true) const;

 private:
  Kind kind_ = Kind::kNone;
  bool markup_ = false;
  OriginId origin_ = kTemplateOrigin;
  union {
    std::int64_t integer_ = 0;
    double floating_;
  };
  Object* object_ = nullptr;
  std::shared_ptr<const Text> text_;
};

struct SequenceObject : Object {
  std::vector<Value> items;
  std::size_t cursor = 0;      ///< kIterator: the next item to give
  const char* view = nullptr;  ///< kDictView: "dict_items" and so on
  bool is_group = false;       ///< kTuple from groupby: has .grouper and .list
};

struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;  ///< in order of insertion, keys unique
  std::int32_t message = -1;                   ///< the index in `messages` of this very message
};

struct RangeObject : Object {
  std::int64_t start = 0;
  std::int64_t stop = 0;  ///< as it was given
  std::int64_t step = 1;
  std::int64_t length = 0;
  /// Wraps where it leaves 64 bits, which no item of the range does.
  std::int64_t at(std::int64_t index) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     static_cast<std::uint64_t>(index) *
                                         static_cast<std::uint64_t>(step));
  }
};

struct LoopObject : Object {
  std::vector<Value> items;
  std::size_t index = 0;
  int depth = 1;
  std::vector<Value> changed;
  bool changed_called = false;
};

struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

class Callable : public Object {
 public:
  virtual Value call(Runtime& runtime, CallArguments arguments) = 0;
  /// Python's repr where it is stable (macros); empty where it would be a memory address.
  virtual std::string repr() const { return {}; }
};

}  // namespace memdecay::jinja
