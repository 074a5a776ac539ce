#include "model/chat_template/value.h"

namespace memdecay::jinja {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kDictView:
      return "dict_view";
    case Kind::kIterator:
      return "generator";
    case Kind::kRange:
      return "range";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kCallable:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
  }
  return "object";
}

Value Value::none(OriginId origin) {
  Value v;
  v.origin_ = origin;
  return v;
}

Value Value::boolean(bool value, OriginId origin) {
  Value v;
  v.kind_ = Kind::kBool;
  v.integer_ = value ? 1 : 0;
  v.origin_ = origin;
  return v;
}

Value Value::integer(std::int64_t value, OriginId origin) {
  Value v;
  v.kind_ = Kind::kInt;
  v.integer_ = value;
  v.origin_ = origin;
  return v;
}

Value Value::floating(double value, OriginId origin) {
  Value v;
  v.kind_ = Kind::kFloat;
  v.floating_ = value;
  v.origin_ = origin;
  return v;
}

Value Value::string(Text text) {
  Value v;
  v.kind_ = Kind::kString;
  v.origin_ = text.origin_at(0);
  v.text_ = std::make_shared<const Text>(std::move(text));
  return v;
}

Value Value::string(std::u32string chars, OriginId origin) {
  Value v = string(Text(std::move(chars), origin));
  v.origin_ = origin;
  return v;
}

Value Value::undefined(const std::string& message) {
  Value v;
  v.kind_ = Kind::kUndefined;
  std::u32string chars = decode_utf8(message).value_or(widen("a name is undefined"));
  v.text_ = std::make_shared<const Text>(std::move(chars), kTemplateOrigin);
  return v;
}

Value Value::of(Kind kind, SequenceObject* object) {
  Value v;
  v.kind_ = kind;
  v.object_ = object;
  return v;
}

Value Value::of(DictObject* object) {
  Value v;
  v.kind_ = Kind::kDict;
  v.object_ = object;
  return v;
}

Value Value::name_space(DictObject* object) {
  Value v = of(object);
  v.kind_ = Kind::kNamespace;
  return v;
}

Value Value::of(RangeObject* object) {
  Value v;
  v.kind_ = Kind::kRange;
  v.object_ = object;
  return v;
}

Value Value::of(LoopObject* object) {
  Value v;
  v.kind_ = Kind::kLoop;
  v.object_ = object;
  return v;
}

Value Value::of(Callable* object) {
  Value v;
  v.kind_ = Kind::kCallable;
  v.object_ = object;
  return v;
}

SequenceObject& Value::sequence() const {
  MEMDECAY_DCHECK(is_sequence_object());
  return *static_cast<SequenceObject*>(object_);
}

DictObject& Value::dict() const {
  MEMDECAY_DCHECK(is(Kind::kDict) || is(Kind::kNamespace));
  return *static_cast<DictObject*>(object_);
}

RangeObject& Value::range() const {
  MEMDECAY_DCHECK(is(Kind::kRange));
  return *static_cast<RangeObject*>(object_);
}

LoopObject& Value::loop() const {
  MEMDECAY_DCHECK(is(Kind::kLoop));
  return *static_cast<LoopObject*>(object_);
}

Callable& Value::callable() const {
  MEMDECAY_DCHECK(is(Kind::kCallable));
  return *static_cast<Callable*>(object_);
}

Value Value::with_origin(OriginId origin) const {
  Value v = *this;
  v.origin_ = origin;
  return v;
}

Value Value::as_markup(bool markup) const {
  Value v = *this;
  v.markup_ = markup;
  return v;
}

}  // namespace memdecay::jinja
