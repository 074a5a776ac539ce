// Parser: tokens to a syntax tree, with Jinja's grammar and precedences.
//
// Statements are parsed in parser.cc, expressions in expression_parser.cc. Throws TemplateFailure.
// O(tokens); nesting bounded by kMaxNesting.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/chat_template/ast.h"
#include "model/chat_template/token.h"

namespace memdecay::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block parse_template();

 private:
  class Nesting;

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const Token& next();
  bool at_operator(std::string_view op) const;
  bool at_name(std::string_view name) const;
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_operator(std::string_view op);
  std::string expect_name();
  void expect_block_end();
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unsupported(const std::string& message) const;
  std::string describe_current() const;

  // Statements.
  Block parse_block(std::initializer_list<std::string_view> ends);
  Block parse_body(std::initializer_list<std::string_view> ends);
  void parse_statement(Block* out);
  StmtPtr parse_for();
  StmtPtr parse_if();
  StmtPtr parse_set();
  StmtPtr parse_with();
  StmtPtr parse_macro();
  StmtPtr parse_call_block();
  StmtPtr parse_filter_block();
  void parse_print(Block* out);
  void parse_signature(MacroDefinition* macro);
  void parse_macro_body(MacroDefinition* macro, std::string_view end);
  Target parse_target(bool with_member, std::string_view end_name);
  Target parse_single_target(bool with_member);

  // Expressions.
  ExprPtr parse_expression();
  ExprPtr parse_conditional(bool allowed);
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_tuple(bool with_conditional, bool in_parentheses, std::string_view end_name);
  bool at_tuple_end(std::string_view end_name) const;
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filters(ExprPtr node);
  ExprPtr parse_subscript(ExprPtr node);
  ExprPtr parse_subscripted();
  ExprPtr parse_call(ExprPtr node);
  ExprPtr parse_filter(ExprPtr node);
  ExprPtr parse_is(ExprPtr node);
  Arguments parse_arguments();
  std::string parse_dotted_name();
  ExprPtr make(ExprKind kind, int line, std::vector<ExprPtr> children = {},
               std::string name = {}) const;
  ExprPtr finish(Expr expr) const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;                         ///< enclosing loops of the current function
  std::vector<MacroDefinition*> macros_;  ///< enclosing macros, innermost last
};

/// Counts the levels of recursion of the parser itself.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser);
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ~Nesting() { --parser_.nesting_; }

 private:
  Parser& parser_;
};

}  // namespace memdecay::jinja
