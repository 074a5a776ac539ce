// The syntax tree of a template: expressions and statements.
//
// Immutable once parsed, shared by all renders. Nesting is bounded by the parser (kMaxNesting), so
// walking and destroying it may recurse.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/chat_template/value.h"

namespace memdecay::jinja {

inline constexpr int kMaxNesting = 200;

enum class ExprKind : std::uint8_t {
  kConstant,
  kName,         ///< name
  kTuple,        ///< children
  kList,         ///< children
  kDict,         ///< children: key, value, key, value...
  kAttribute,    ///< children[0].name
  kSubscript,    ///< children[0][children[1]]
  kSlice,        ///< children: start, stop, step, null where left out
  kCall,         ///< children[0](arguments)
  kFilter,       ///< children[0] | name(arguments); children[0] null in filter blocks
  kIs,           ///< children[0] is name(arguments)
  kNot,          ///< children[0]
  kNegative,     ///< children[0]
  kPositive,     ///< children[0]
  kBinary,       ///< children[0] name children[1]
  kConcat,       ///< children, joined as strings
  kAnd,          ///< children: two
  kOr,           ///< children: two
  kCompare,      ///< children[0] operators[0] children[1] operators[1] ...
  kConditional,  ///< children: then, condition, else or null
};

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr spread;          ///< *expression, or null
  ExprPtr spread_keyword;  ///< **expression, or null
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 1;
  int height = 1;  ///< 1 + that of the highest child
  std::string name;
  Value constant;
  std::vector<ExprPtr> children;
  std::vector<std::string> operators;
  Arguments arguments;
};

enum class StmtKind : std::uint8_t {
  kText,         ///< text
  kPrint,        ///< expr
  kFor,          ///< target, expr, condition, body, otherwise
  kIf,           ///< expr, body, otherwise (an elif is an if in there)
  kSet,          ///< target, expr
  kSetBlock,     ///< target, filter or null, body
  kWith,         ///< assignments, body
  kMacro,        ///< macro
  kCallBlock,    ///< macro (the caller), expr (the call)
  kFilterBlock,  ///< filter, body
  kGeneration,   ///< body
  kBreak,
  kContinue,
};

/// What may stand left of a `=`: a name, a namespace member, or a tuple of targets.
struct Target {
  std::string name;
  std::string member;           ///< empty: a plain name
  std::vector<Target> targets;  ///< of a tuple
  bool is_tuple = false;
};

struct Stmt;
using StmtPtr = std::unique_ptr<const Stmt>;
using Block = std::vector<StmtPtr>;

struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  ///< of the last parameters
  Block body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 1;
  Text text;
  Target target;
  ExprPtr expr;
  ExprPtr condition;
  ExprPtr filter;
  Block body;
  Block otherwise;
  std::vector<std::pair<Target, ExprPtr>> assignments;
  MacroDefinition macro;
};

struct TemplateBody {
  Block block;
};

}  // namespace memdecay::jinja
