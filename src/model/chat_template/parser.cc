#include "model/chat_template/parser.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/chat_template/template_failure.h"

namespace memdecay::jinja {
namespace {

std::unique_ptr<Stmt> make_stmt(StmtKind kind, int line) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->line = line;
  return stmt;
}

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
         name == "None";
}

}  // namespace

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    parser_.fail(fmt::format("nested more than {} levels deep", kMaxNesting));
  }
}

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::at_operator(std::string_view op) const {
  return current().type == TokenType::kOperator && current().name == op;
}

bool Parser::at_name(std::string_view name) const {
  return current().type == TokenType::kName && current().name == name;
}

bool Parser::skip_operator(std::string_view op) {
  if (!at_operator(op)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail(fmt::format("expected '{}', got {}", op, describe_current()));
}

std::string Parser::expect_name() {
  if (current().type != TokenType::kName) {
    fail(fmt::format("expected a name, got {}", describe_current()));
  }
  return next().name;
}

void Parser::expect_block_end() {
  if (current().type != TokenType::kBlockEnd) {
    fail(fmt::format("expected the end of the statement, got {}", describe_current()));
  }
  next();
}

void Parser::fail(const std::string& message) const {
  throw TemplateFailure{StatusCode::kInvalidArgument, message, current().line};
}

void Parser::fail_unsupported(const std::string& message) const {
  throw TemplateFailure{StatusCode::kUnsupported, message, current().line};
}

std::string Parser::describe_current() const {
  switch (current().type) {
    case TokenType::kName:
    case TokenType::kOperator:
      return fmt::format("'{}'", current().name);
    case TokenType::kString:
      return "a string";
    case TokenType::kInteger:
    case TokenType::kFloat:
      return "a number";
    case TokenType::kBlockEnd:
      return "the end of the statement";
    case TokenType::kVariableEnd:
      return "the end of the print statement";
    case TokenType::kEnd:
      return "the end of the template";
    default:
      return "template text";
  }
}

Block Parser::parse_template() {
  Block block = parse_block({});
  if (current().type != TokenType::kEnd) fail("unexpected " + describe_current());
  return block;
}

Block Parser::parse_block(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(*this);
  Block out;
  while (current().type != TokenType::kEnd) {
    const int line = current().line;
    if (current().type == TokenType::kData) {
      auto stmt = make_stmt(StmtKind::kText, line);
      stmt->text = Text(next().chars, kTemplateOrigin);
      out.push_back(std::move(stmt));
    } else if (current().type == TokenType::kVariableBegin) {
      next();
      auto stmt = make_stmt(StmtKind::kPrint, line);
      stmt->expr = parse_tuple(true, false, {});
      if (current().type != TokenType::kVariableEnd) {
        fail(fmt::format("expected the end of the print statement, got {}", describe_current()));
      }
      next();
      out.push_back(std::move(stmt));
    } else {
      next();
      const bool ended = current().type == TokenType::kName &&
                         std::find(ends.begin(), ends.end(), current().name) != ends.end();
      if (ended) return out;
      parse_statement(&out);
      expect_block_end();
    }
  }
  if (ends.size() != 0) {
    fail(fmt::format("the template ends where '{}' is due", *(ends.end() - 1)));
  }
  return out;
}

Block Parser::parse_body(std::initializer_list<std::string_view> ends) {
  skip_operator(":");
  expect_block_end();
  return parse_block(ends);
}

void Parser::parse_statement(Block* out) {
  if (current().type != TokenType::kName) fail("a statement starts with a name");
  const std::string name = current().name;
  const int line = current().line;
  if (name == "for") return out->push_back(parse_for());
  if (name == "if") return out->push_back(parse_if());
  if (name == "set") return out->push_back(parse_set());
  if (name == "with") return out->push_back(parse_with());
  if (name == "macro") return out->push_back(parse_macro());
  if (name == "call") return out->push_back(parse_call_block());
  if (name == "filter") return out->push_back(parse_filter_block());
  if (name == "print") return parse_print(out);
  if (name == "break" || name == "continue") {
    if (loops_ == 0) fail(fmt::format("'{}' outside of a loop", name));
    next();
    out->push_back(make_stmt(name == "break" ? StmtKind::kBreak : StmtKind::kContinue, line));
    return;
  }
  if (name == "generation") {
    next();
    auto stmt = make_stmt(StmtKind::kGeneration, line);
    MacroDefinition body;
    parse_macro_body(&body, "endgeneration");
    stmt->body = std::move(body.body);
    return out->push_back(std::move(stmt));
  }
  for (const std::string_view known :
       {"block", "extends", "include", "import", "from", "autoescape"}) {
    if (name == known) fail_unsupported(fmt::format("the statement '{}'", name));
  }
  fail(fmt::format("unknown statement '{}'", name));
}

StmtPtr Parser::parse_for() {
  auto stmt = make_stmt(StmtKind::kFor, next().line);
  stmt->target = parse_target(false, "in");
  if (!skip_name("in")) fail(fmt::format("expected 'in', got {}", describe_current()));
  stmt->expr = parse_tuple(false, false, "recursive");
  if (skip_name("if")) stmt->condition = parse_expression();
  if (at_name("recursive")) fail_unsupported("a recursive loop");
  ++loops_;
  stmt->body = parse_body({"endfor", "else"});
  --loops_;
  if (next().name == "else") {
    stmt->otherwise = parse_body({"endfor"});
    next();
  }
  return stmt;
}

StmtPtr Parser::parse_if() {
  const Nesting nesting(*this);
  auto stmt = make_stmt(StmtKind::kIf, next().line);
  stmt->expr = parse_tuple(false, false, {});
  stmt->body = parse_body({"elif", "else", "endif"});
  if (at_name("elif")) {
    stmt->otherwise.push_back(parse_if());
  } else if (next().name == "else") {
    stmt->otherwise = parse_body({"endif"});
    next();
  }
  return stmt;
}

StmtPtr Parser::parse_set() {
  const int line = next().line;
  Target target = parse_target(true, {});
  if (skip_operator("=")) {
    auto stmt = make_stmt(StmtKind::kSet, line);
    stmt->target = std::move(target);
    stmt->expr = parse_tuple(true, false, {});
    return stmt;
  }
  auto stmt = make_stmt(StmtKind::kSetBlock, line);
  stmt->target = std::move(target);
  while (at_operator("|")) {
    next();
    stmt->filter = parse_filter(std::move(stmt->filter));
  }
  stmt->body = parse_body({"endset"});
  next();
  return stmt;
}

StmtPtr Parser::parse_with() {
  auto stmt = make_stmt(StmtKind::kWith, next().line);
  while (current().type != TokenType::kBlockEnd) {
    if (!stmt->assignments.empty()) expect_operator(",");
    Target target = parse_target(false, {});
    expect_operator("=");
    stmt->assignments.emplace_back(std::move(target), parse_expression());
  }
  stmt->body = parse_body({"endwith"});
  next();
  return stmt;
}

void Parser::parse_signature(MacroDefinition* macro) {
  expect_operator("(");
  while (!at_operator(")")) {
    if (!macro->parameters.empty()) expect_operator(",");
    std::string name = expect_name();
    if (skip_operator("=")) {
      macro->defaults.push_back(parse_expression());
    } else if (!macro->defaults.empty()) {
      fail("a parameter without a default follows one with a default");
    }
    macro->parameters.push_back(std::move(name));
  }
  expect_operator(")");
}

void Parser::parse_macro_body(MacroDefinition* macro, std::string_view end) {
  const int loops = std::exchange(loops_, 0);
  macros_.push_back(macro);
  macro->body = parse_body({end});
  macros_.pop_back();
  loops_ = loops;
  next();
}

StmtPtr Parser::parse_macro() {
  auto stmt = make_stmt(StmtKind::kMacro, next().line);
  stmt->macro.name = expect_name();
  if (is_constant_name(stmt->macro.name)) fail("cannot assign to a constant");
  parse_signature(&stmt->macro);
  parse_macro_body(&stmt->macro, "endmacro");
  return stmt;
}

StmtPtr Parser::parse_call_block() {
  auto stmt = make_stmt(StmtKind::kCallBlock, next().line);
  stmt->macro.name = "caller";
  if (at_operator("(")) parse_signature(&stmt->macro);
  stmt->expr = parse_expression();
  if (stmt->expr->kind != ExprKind::kCall) fail("a call block needs a call");
  parse_macro_body(&stmt->macro, "endcall");
  return stmt;
}

StmtPtr Parser::parse_filter_block() {
  auto stmt = make_stmt(StmtKind::kFilterBlock, next().line);
  stmt->filter = parse_filter(nullptr);
  while (skip_operator("|")) stmt->filter = parse_filter(std::move(stmt->filter));
  stmt->body = parse_body({"endfilter"});
  next();
  return stmt;
}

void Parser::parse_print(Block* out) {
  const int line = next().line;
  bool first = true;
  while (current().type != TokenType::kBlockEnd) {
    if (!first) expect_operator(",");
    first = false;
    auto stmt = make_stmt(StmtKind::kPrint, line);
    stmt->expr = parse_expression();
    out->push_back(std::move(stmt));
  }
}

Target Parser::parse_single_target(bool with_member) {
  const Nesting nesting(*this);
  Target target;
  if (skip_operator("(")) {
    target = parse_target(with_member, {});
    expect_operator(")");
    return target;
  }
  if (current().type != TokenType::kName) {
    fail(fmt::format("cannot assign to {}", describe_current()));
  }
  target.name = next().name;
  if (is_constant_name(target.name)) fail("cannot assign to a constant");
  if (with_member && skip_operator(".")) target.member = expect_name();
  return target;
}

Target Parser::parse_target(bool with_member, std::string_view end_name) {
  Target tuple;
  for (;;) {
    const bool at_end = at_operator(")") || current().type == TokenType::kBlockEnd ||
                        (!end_name.empty() && at_name(end_name));
    if (at_end && !tuple.targets.empty()) break;
    tuple.targets.push_back(parse_single_target(with_member));
    if (!skip_operator(",")) break;
    tuple.is_tuple = true;
  }
  if (!tuple.is_tuple) return Target(std::move(tuple.targets.front()));
  return tuple;
}

}  // namespace memdecay::jinja
