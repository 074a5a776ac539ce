#include "model/chat_template/attributes.h"
#include "model/chat_template/filters.h"
#include "model/chat_template/globals.h"
#include "model/chat_template/interpreter.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {

Value Interpreter::evaluate(const Expr& expr) {
  const Runtime::Level level(runtime_);
  runtime_.charge_work(1);
  runtime_.set_line(expr.line);
  return evaluate_unguarded(expr);
}

Value Interpreter::evaluate_unguarded(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return evaluate_name(expr);
    case ExprKind::kTuple:
      return runtime_.make_sequence(Kind::kTuple, evaluate_all(expr.children));
    case ExprKind::kList:
      return runtime_.make_list(evaluate_all(expr.children));
    case ExprKind::kDict:
      return evaluate_dict(expr);
    case ExprKind::kAttribute:
      return get_attribute(runtime_, evaluate(*expr.children[0]), expr.name);
    case ExprKind::kSubscript:
      return evaluate_subscript(expr);
    case ExprKind::kSlice:
      runtime_.fail_unsupported("a slice among several subscripts");
    case ExprKind::kCall:
      return evaluate_call(expr, nullptr);
    case ExprKind::kFilter:
      return apply_filter(expr, evaluate(*expr.children[0]));
    case ExprKind::kIs: {
      const Value subject = evaluate(*expr.children[0]);
      const CallArguments arguments = evaluate_arguments(expr.arguments);
      return Value::boolean(find_test(runtime_, expr.name)(runtime_, subject, arguments));
    }
    case ExprKind::kNot:
      return Value::boolean(!truthy(evaluate(*expr.children[0])));
    case ExprKind::kNegative:
    case ExprKind::kPositive:
      return negate(runtime_, evaluate(*expr.children[0]), expr.kind == ExprKind::kNegative);
    case ExprKind::kBinary: {
      const Value left = evaluate(*expr.children[0]);
      return arithmetic(runtime_, expr.name, left, evaluate(*expr.children[1]));
    }
    case ExprKind::kConcat:
      return evaluate_concat(expr);
    case ExprKind::kAnd: {
      Value left = evaluate(*expr.children[0]);
      return truthy(left) ? evaluate(*expr.children[1]) : left;
    }
    case ExprKind::kOr: {
      Value left = evaluate(*expr.children[0]);
      return truthy(left) ? left : evaluate(*expr.children[1]);
    }
    case ExprKind::kCompare:
      return evaluate_compare(expr);
    case ExprKind::kConditional:
      return evaluate_conditional(expr);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expr& expr) {
  if (const Value* found = scope_->find(expr.name); found != nullptr) return *found;
  Value global;
  if (find_global(runtime_, expr.name, &global)) return global;
  return Value::undefined("'" + expr.name + "' is undefined");
}

Value Interpreter::evaluate_dict(const Expr& expr) {
  auto* dict = runtime_.make<DictObject>();
  for (std::size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    const Value key = evaluate(*expr.children[i]);
    set_key(runtime_, dict, key, evaluate(*expr.children[i + 1]));
  }
  return Value::of(dict);
}

Value Interpreter::evaluate_subscript(const Expr& expr) {
  const Value object = evaluate(*expr.children[0]);
  const Expr& index = *expr.children[1];
  if (index.kind != ExprKind::kSlice) return get_item(runtime_, object, evaluate(index));
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (index.children[i]) bounds[i] = evaluate(*index.children[i]);
  }
  return get_slice(runtime_, object, bounds[0], bounds[1], bounds[2]);
}

Value Interpreter::evaluate_call(const Expr& expr, const Value* caller) {
  const Expr& callee = *expr.children[0];
  const bool is_method = callee.kind == ExprKind::kAttribute;
  Value object;
  Value function;
  Method method = nullptr;
  if (is_method) {
    object = evaluate(*callee.children[0]);
    if (object.is_undefined()) runtime_.fail_undefined(object);
    method = find_method(object.kind(), callee.name);
    if (method == nullptr) function = get_attribute(runtime_, object, callee.name);
  } else {
    function = evaluate(callee);
  }
  CallArguments arguments = evaluate_arguments(expr.arguments);
  if (caller != nullptr) arguments.keyword.emplace_back("caller", *caller);
  runtime_.set_line(expr.line);
  if (method != nullptr) {
    runtime_.charge_work(1);
    return method(runtime_, object, arguments);
  }
  if (function.is_undefined()) runtime_.fail_undefined(function);
  if (function.is(Kind::kLoop)) runtime_.fail_unsupported("a recursive loop");
  if (!function.is(Kind::kCallable)) {
    runtime_.fail_argument("a {} cannot be called", kind_name(function.kind()));
  }
  return function.callable().call(runtime_, std::move(arguments));
}

Value Interpreter::evaluate_compare(const Expr& expr) {
  Value left = evaluate(*expr.children[0]);
  for (std::size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.children[i + 1]);
    if (!compare(runtime_, expr.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_concat(const Expr& expr) {
  Text out;
  for (const ExprPtr& child : expr.children) {
    const Text part = to_text(runtime_, evaluate(*child));
    runtime_.charge_characters(part.size());
    out.append(part);
  }
  return Value::string(std::move(out));
}

Value Interpreter::evaluate_conditional(const Expr& expr) {
  if (truthy(evaluate(*expr.children[1]))) return evaluate(*expr.children[0]);
  if (expr.children[2]) return evaluate(*expr.children[2]);
  return Value::undefined("an inline if without an else was false");
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs) {
  std::vector<Value> out;
  out.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) out.push_back(evaluate(*expr));
  return out;
}

CallArguments Interpreter::evaluate_arguments(const Arguments& arguments) {
  CallArguments out;
  out.positional = evaluate_all(arguments.positional);
  for (const auto& [name, expr] : arguments.keyword)
    out.keyword.emplace_back(name, evaluate(*expr));
  if (arguments.spread) {
    for (Value& value : iterate(runtime_, evaluate(*arguments.spread))) {
      out.positional.push_back(std::move(value));
    }
  }
  if (!arguments.spread_keyword) return out;
  const Value mapping = evaluate(*arguments.spread_keyword);
  if (!mapping.is(Kind::kDict)) runtime_.fail_argument("** needs a mapping");
  for (const auto& [key, value] : mapping.dict().items) {
    if (!key.is_string()) runtime_.fail_argument("** needs a mapping with strings as keys");
    const std::string name = encode_utf8(key.chars());
    for (const auto& [given, ignored] : out.keyword) {
      if (given == name) runtime_.fail_argument("the argument '{}' is given twice", name);
    }
    out.keyword.emplace_back(name, value);
  }
  return out;
}

Value Interpreter::apply_filter(const Expr& filter, const Value& input) {
  Value value = input;
  // In filter and set blocks the first of a chain has no operand of its own.
  if (filter.children[0] != nullptr && filter.children[0]->kind == ExprKind::kFilter) {
    const Expr* innermost = filter.children[0].get();
    while (innermost->kind == ExprKind::kFilter && innermost->children[0]) {
      innermost = innermost->children[0].get();
    }
    const bool is_block_chain = innermost->kind == ExprKind::kFilter;
    if (is_block_chain) value = apply_filter(*filter.children[0], input);
  }
  const Filter function = find_filter(runtime_, filter.name);
  const CallArguments arguments = evaluate_arguments(filter.arguments);
  runtime_.set_line(filter.line);
  return function(runtime_, value, arguments);
}

}  // namespace memdecay::jinja
