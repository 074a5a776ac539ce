// Interpreter: walks a template's tree and writes the prompt.
//
// Statements are in interpreter.cc, expressions in evaluate.cc, macros in macro.cc. Variables live
// in Scopes: a loop body, macro, set block and filter block have their own, an if has none, as in
// Jinja. One render, one thread; failures are thrown as TemplateFailure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/chat_template/ast.h"
#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

/// Names and their values; what is not here is looked up in the enclosing scope.
struct Scope : Object {
  explicit Scope(Scope* enclosing) : parent(enclosing) {}
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);

  Scope* parent;
  std::vector<std::pair<std::string, Value>> variables;
};

class Interpreter {
 public:
  Interpreter(Runtime& runtime, Scope* globals) : runtime_(runtime), scope_(globals) {}

  Text render(const TemplateBody& body);

  /// Runs a macro's body with its arguments; what it wrote is the result.
  Value call_macro(const MacroDefinition& macro, Scope* home, const CallArguments& arguments);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class ScopeGuard;
  class OutputGuard;

  Flow run(const Block& block);
  Flow run(const Stmt& stmt);
  Flow run_for(const Stmt& stmt);
  std::vector<Value> loop_items(const Stmt& stmt);
  void run_set(const Stmt& stmt);
  void run_set_block(const Stmt& stmt);
  Flow run_with(const Stmt& stmt);
  void run_call_block(const Stmt& stmt);
  Flow run_filter_block(const Stmt& stmt);
  void run_generation(const Stmt& stmt);
  void assign(const Target& target, const Value& value);
  void emit(const Text& text);

  Value evaluate(const Expr& expr);
  Value evaluate_unguarded(const Expr& expr);
  Value evaluate_name(const Expr& expr);
  Value evaluate_dict(const Expr& expr);
  Value evaluate_subscript(const Expr& expr);
  Value evaluate_call(const Expr& expr, const Value* caller);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_concat(const Expr& expr);
  Value evaluate_conditional(const Expr& expr);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs);
  CallArguments evaluate_arguments(const Arguments& arguments);
  Value apply_filter(const Expr& filter, const Value& input);

  void bind_parameters(const MacroDefinition& macro, const CallArguments& arguments);

  Runtime& runtime_;
  Scope* scope_;
  Text* output_ = nullptr;
  std::int32_t message_ = -1;  ///< of the innermost loop over messages
};

/// A macro as a value; `home` is the scope where it was defined.
Value make_macro(Runtime& runtime, Interpreter& interpreter, const MacroDefinition& definition,
                 Scope* home);

/// Enters a scope of its own for the guard's life.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* parent)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter.scope_ = interpreter.runtime_.make<Scope>(parent);
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { interpreter_.scope_ = outer_; }

 private:
  Interpreter& interpreter_;
  Scope* outer_;
};

/// Catches what is written in the guard's life.
class Interpreter::OutputGuard {
 public:
  explicit OutputGuard(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(interpreter.output_) {
    interpreter.output_ = &text_;
  }
  OutputGuard(const OutputGuard&) = delete;
  OutputGuard& operator=(const OutputGuard&) = delete;
  ~OutputGuard() { interpreter_.output_ = outer_; }

  Text take() { return std::move(text_); }

 private:
  Interpreter& interpreter_;
  Text* outer_;
  Text text_;
};

}  // namespace memdecay::jinja
