#include <fmt/core.h>

#include <algorithm>

#include "model/chat_template/parser.h"
#include "model/chat_template/template_failure.h"

namespace memdecay::jinja {

ExprPtr Parser::finish(Expr expr) const {
  int height = 0;
  const auto measure = [&height](const ExprPtr& child) {
    if (child) height = std::max(height, child->height);
  };
  for (const ExprPtr& child : expr.children) measure(child);
  for (const ExprPtr& argument : expr.arguments.positional) measure(argument);
  for (const auto& [name, argument] : expr.arguments.keyword) measure(argument);
  measure(expr.arguments.spread);
  measure(expr.arguments.spread_keyword);
  expr.height = height + 1;
  if (expr.height > kMaxNesting) {
    fail(fmt::format("an expression nests more than {} levels deep", kMaxNesting));
  }
  return std::make_unique<const Expr>(std::move(expr));
}

ExprPtr Parser::make(ExprKind kind, int line, std::vector<ExprPtr> children,
                     std::string name) const {
  Expr expr;
  expr.kind = kind;
  expr.line = line;
  expr.children = std::move(children);
  expr.name = std::move(name);
  return finish(std::move(expr));
}

namespace {

std::vector<ExprPtr> list_of(ExprPtr a, ExprPtr b) {
  std::vector<ExprPtr> out;
  out.push_back(std::move(a));
  out.push_back(std::move(b));
  return out;
}

std::vector<ExprPtr> list_of(ExprPtr a) {
  std::vector<ExprPtr> out;
  out.push_back(std::move(a));
  return out;
}

}  // namespace

ExprPtr Parser::parse_expression() {
  return parse_conditional(true);
}

ExprPtr Parser::parse_conditional(bool allowed) {
  const Nesting nesting(*this);
  ExprPtr node = parse_or();
  while (allowed && at_name("if")) {
    const int line = next().line;
    std::vector<ExprPtr> children = list_of(std::move(node), parse_or());
    children.push_back(skip_name("else") ? parse_conditional(true) : nullptr);
    node = make(ExprKind::kConditional, line, std::move(children));
  }
  return node;
}

ExprPtr Parser::parse_or() {
  ExprPtr left = parse_and();
  while (at_name("or")) {
    const int line = next().line;
    left = make(ExprKind::kOr, line, list_of(std::move(left), parse_and()));
  }
  return left;
}

ExprPtr Parser::parse_and() {
  ExprPtr left = parse_not();
  while (at_name("and")) {
    const int line = next().line;
    left = make(ExprKind::kAnd, line, list_of(std::move(left), parse_not()));
  }
  return left;
}

ExprPtr Parser::parse_not() {
  if (!at_name("not")) return parse_compare();
  const Nesting nesting(*this);
  const int line = next().line;
  return make(ExprKind::kNot, line, list_of(parse_not()));
}

ExprPtr Parser::parse_compare() {
  Expr expr;
  expr.kind = ExprKind::kCompare;
  expr.line = current().line;
  expr.children.push_back(parse_sum());
  for (;;) {
    static constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    const bool compares = current().type == TokenType::kOperator &&
                          std::find(std::begin(kComparisons), std::end(kComparisons),
                                    current().name) != std::end(kComparisons);
    if (compares) {
      expr.operators.push_back(next().name);
    } else if (skip_name("in")) {
      expr.operators.emplace_back("in");
    } else if (at_name("not") && ahead().type == TokenType::kName && ahead().name == "in") {
      next();
      next();
      expr.operators.emplace_back("not in");
    } else {
      break;
    }
    expr.children.push_back(parse_sum());
  }
  if (expr.operators.empty()) return std::move(expr.children.front());
  return finish(std::move(expr));
}

ExprPtr Parser::parse_sum() {
  ExprPtr left = parse_concat();
  while (at_operator("+") || at_operator("-")) {
    const Token& op = next();
    left = make(ExprKind::kBinary, op.line, list_of(std::move(left), parse_concat()), op.name);
  }
  return left;
}

ExprPtr Parser::parse_concat() {
  const int line = current().line;
  std::vector<ExprPtr> children = list_of(parse_product());
  while (skip_operator("~")) children.push_back(parse_product());
  if (children.size() == 1) return std::move(children.front());
  return make(ExprKind::kConcat, line, std::move(children));
}

ExprPtr Parser::parse_product() {
  ExprPtr left = parse_power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    const Token& op = next();
    left = make(ExprKind::kBinary, op.line, list_of(std::move(left), parse_power()), op.name);
  }
  return left;
}

ExprPtr Parser::parse_power() {
  ExprPtr left = parse_unary(true);
  while (at_operator("**")) {
    const Token& op = next();
    left = make(ExprKind::kBinary, op.line, list_of(std::move(left), parse_unary(true)), op.name);
  }
  return left;
}

ExprPtr Parser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  ExprPtr node;
  if (at_operator("-") || at_operator("+")) {
    const Token& op = next();
    const ExprKind kind = op.name == "-" ? ExprKind::kNegative : ExprKind::kPositive;
    node = make(kind, op.line, list_of(parse_unary(false)));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filters(std::move(node)) : std::move(node);
}

ExprPtr Parser::parse_name() {
  const Token& token = next();
  Expr expr;
  expr.line = token.line;
  if (token.name == "true" || token.name == "True") {
    expr.constant = Value::boolean(true);
  } else if (token.name == "false" || token.name == "False") {
    expr.constant = Value::boolean(false);
  } else if (token.name != "none" && token.name != "None") {
    expr.kind = ExprKind::kName;
    expr.name = token.name;
    // A name in a macro counts for the enclosing ones too: their bodies contain it.
    for (MacroDefinition* macro : macros_) {
      macro->uses_caller |= token.name == "caller";
      macro->uses_varargs |= token.name == "varargs";
      macro->uses_kwargs |= token.name == "kwargs";
    }
  }
  return finish(std::move(expr));
}

ExprPtr Parser::parse_primary() {
  const Token& token = current();
  Expr expr;
  expr.line = token.line;
  switch (token.type) {
    case TokenType::kName:
      return parse_name();
    case TokenType::kString: {
      std::u32string chars;
      while (current().type == TokenType::kString) chars += next().chars;
      expr.constant = Value::string(std::move(chars));
      return finish(std::move(expr));
    }
    case TokenType::kInteger:
      expr.constant = Value::integer(next().integer);
      return finish(std::move(expr));
    case TokenType::kFloat:
      expr.constant = Value::floating(next().floating);
      return finish(std::move(expr));
    default:
      break;
  }
  if (at_operator("[")) return parse_list();
  if (at_operator("{")) return parse_dict();
  if (!skip_operator("(")) fail("unexpected " + describe_current());
  ExprPtr node = parse_tuple(true, true, {});
  expect_operator(")");
  return node;
}

bool Parser::at_tuple_end(std::string_view end_name) const {
  if (current().type == TokenType::kVariableEnd || current().type == TokenType::kBlockEnd) {
    return true;
  }
  return at_operator(")") || (!end_name.empty() && at_name(end_name));
}

ExprPtr Parser::parse_tuple(bool with_conditional, bool in_parentheses, std::string_view end_name) {
  const int line = current().line;
  std::vector<ExprPtr> children;
  bool is_tuple = false;
  while (!at_tuple_end(end_name)) {
    children.push_back(parse_conditional(with_conditional));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!children.empty()) return std::move(children.front());
    if (!in_parentheses) fail("expected an expression, got " + describe_current());
  }
  return make(ExprKind::kTuple, line, std::move(children));
}

ExprPtr Parser::parse_list() {
  const int line = next().line;
  std::vector<ExprPtr> children;
  while (!at_operator("]")) {
    if (!children.empty()) expect_operator(",");
    if (at_operator("]")) break;
    children.push_back(parse_expression());
  }
  expect_operator("]");
  return make(ExprKind::kList, line, std::move(children));
}

ExprPtr Parser::parse_dict() {
  const int line = next().line;
  std::vector<ExprPtr> children;
  while (!at_operator("}")) {
    if (!children.empty()) expect_operator(",");
    if (at_operator("}")) break;
    children.push_back(parse_expression());
    expect_operator(":");
    children.push_back(parse_expression());
  }
  expect_operator("}");
  return make(ExprKind::kDict, line, std::move(children));
}

ExprPtr Parser::parse_postfix(ExprPtr node) {
  for (;;) {
    if (at_operator(".") || at_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::parse_filters(ExprPtr node) {
  for (;;) {
    if (skip_operator("|")) {
      node = parse_filter(std::move(node));
    } else if (at_name("is")) {
      node = parse_is(std::move(node));
    } else if (at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::parse_subscript(ExprPtr node) {
  const int line = current().line;
  if (skip_operator(".")) {
    if (current().type == TokenType::kName) {
      return make(ExprKind::kAttribute, line, list_of(std::move(node)), next().name);
    }
    if (current().type != TokenType::kInteger) fail("expected a name or a number after '.'");
    Expr index;
    index.line = line;
    index.constant = Value::integer(next().integer);
    return make(ExprKind::kSubscript, line, list_of(std::move(node), finish(std::move(index))));
  }
  next();
  std::vector<ExprPtr> children;
  while (!at_operator("]")) {
    if (!children.empty()) expect_operator(",");
    children.push_back(parse_subscripted());
  }
  expect_operator("]");
  ExprPtr index = children.size() == 1 ? std::move(children.front())
                                       : make(ExprKind::kTuple, line, std::move(children));
  return make(ExprKind::kSubscript, line, list_of(std::move(node), std::move(index)));
}

ExprPtr Parser::parse_subscripted() {
  const int line = current().line;
  const auto at_end = [this] { return at_operator(":") || at_operator("]") || at_operator(","); };
  ExprPtr start;
  if (!at_operator(":")) {
    start = parse_expression();
    if (!at_operator(":")) return start;
  }
  next();
  std::vector<ExprPtr> children = list_of(std::move(start));
  children.push_back(at_end() ? nullptr : parse_expression());
  ExprPtr step;
  if (skip_operator(":") && !at_end()) step = parse_expression();
  children.push_back(std::move(step));
  return make(ExprKind::kSlice, line, std::move(children));
}

Arguments Parser::parse_arguments() {
  expect_operator("(");
  Arguments out;
  bool first = true;
  const auto ensure = [this](bool holds) {
    if (!holds) fail("wrong order of arguments in a call");
  };
  while (!at_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    first = false;
    if (skip_operator("*")) {
      ensure(!out.spread && !out.spread_keyword);
      out.spread = parse_expression();
    } else if (skip_operator("**")) {
      ensure(!out.spread_keyword);
      out.spread_keyword = parse_expression();
    } else if (current().type == TokenType::kName && ahead().type == TokenType::kOperator &&
               ahead().name == "=") {
      ensure(!out.spread_keyword);
      std::string name = next().name;
      next();
      out.keyword.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!out.spread && !out.spread_keyword && out.keyword.empty());
      out.positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
  return out;
}

ExprPtr Parser::parse_call(ExprPtr node) {
  Expr expr;
  expr.kind = ExprKind::kCall;
  expr.line = current().line;
  expr.children = list_of(std::move(node));
  expr.arguments = parse_arguments();
  return finish(std::move(expr));
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_operator(".")) name += "." + expect_name();
  return name;
}

ExprPtr Parser::parse_filter(ExprPtr node) {
  Expr expr;
  expr.kind = ExprKind::kFilter;
  expr.line = current().line;
  expr.children = list_of(std::move(node));
  expr.name = parse_dotted_name();
  if (at_operator("(")) expr.arguments = parse_arguments();
  return finish(std::move(expr));
}

ExprPtr Parser::parse_is(ExprPtr node) {
  Expr expr;
  expr.kind = ExprKind::kIs;
  expr.line = next().line;
  const bool negated = skip_name("not");
  expr.children = list_of(std::move(node));
  expr.name = parse_dotted_name();
  const TokenType type = current().type;
  const bool starts_argument =
      (type == TokenType::kName && !at_name("else") && !at_name("or") && !at_name("and")) ||
      type == TokenType::kString || type == TokenType::kInteger || type == TokenType::kFloat ||
      at_operator("[") || at_operator("{");
  if (at_operator("(")) {
    expr.arguments = parse_arguments();
  } else if (starts_argument) {
    if (at_name("is")) fail("tests cannot be chained with 'is'");
    expr.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  const int line = expr.line;
  ExprPtr test = finish(std::move(expr));
  return negated ? make(ExprKind::kNot, line, list_of(std::move(test))) : std::move(test);
}

}  // namespace memdecay::jinja
