// The parser of graphs: a loop over statements with a stack of open regions, so that nesting costs no stack
// of ours. Internal to kernel/text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar.h"
#include "text/lexer.h"
#include "text/text.h"

namespace regie {

// `@engine("cpu")` and its like, as they come; what they may stand on is checked by whoever collects them.
struct ReadAssignments {
  uint32_t space = REGIE_NONE;
  std::optional<Token> alias;
  uint64_t alias_offset = 0;
};

class GraphParser {
 public:
  GraphParser(Lexer& lexer, const ParseOptions& options)
      : lex_(lexer), options_(options), graph_(std::make_unique<Graph>()), g_(*graph_) {
    for (const auto& [name, value] : options.sizes) g_.dims().fix_symbol(name, value);
  }

  Result<std::unique_ptr<Graph>> graph();

 private:
  struct ReadResult {
    std::optional<Token> label;  // absent: omitted
    std::optional<regie_type> type;
    ReadAssignments assignments;
  };
  struct Node {  // one that is being read
    Token at;
    NodeSpec spec;
    std::vector<ReadResult> results;
    uint32_t engine = REGIE_NONE, stream = REGIE_NONE;
    std::optional<Token> label;
  };
  struct Defined {
    uint32_t value;
    uint32_t line;
  };
  struct Key {  // a label; its text is the lexer's
    std::string_view text;
    uint32_t occurrence;
    bool unnamed;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return std::hash<std::string_view>()(k.text) * 31 + k.occurrence * 2 + k.unnamed;
    }
  };
  using Names = std::unordered_map<Key, Defined, KeyHash>;
  struct Alias {
    uint32_t value;
    Token base;
    uint64_t offset;
  };
  struct Frame {
    uint32_t region = 0;
    Node owner;  // who takes this region
    std::vector<Token> results;
    std::vector<std::optional<std::string>> output_names;
    std::vector<std::pair<size_t, Token>> shapes;  // of outputs, by what tells them
    Names values;
    std::vector<Alias> aliases;
  };

  // ---- Names ----

  static Key key_of(const Token& t) { return {t.text, t.occurrence, t.is_unnamed_value()}; }
  std::string shown(const Token& t) const { return "'" + std::string(lex_.source(t, t)) + "'"; }

  Status define(const Token& t, uint32_t value);
  static std::string_view name_of(const Token& t);

  // Of this region; or a constant of one around it.
  Result<uint32_t> look_up(const Token& t) const;

  // ---- Header ----

  // The ranges of symbols stand behind the types that use them, but must be known before, as they decide how
  // dimension expressions simplify.
  Status symbols_first();
  Status symbols();
  Status engines();
  Status index(const Token& t, uint32_t* to);
  Status parameters(uint32_t region, bool constants_too);
  Status default_value(uint32_t argument);
  Status result_list(bool with_names);

  // ---- Body ----

  Status body();

  // Of the innermost region, whose '}' comes now; then its owner goes on.
  Status close_region();
  Status name_outputs();
  Status statement();
  Status results(Node* node);
  Status result_type(ReadResult* r);
  Status operands(Node* node);

  // Attributes, annotations and regions in any order, to the end of the statement. A region is read by the
  // main loop, which comes back here with what there is so far.
  Status finish_node(Node node);
  Status open_region(Node owner);
  Status attributes(Node* node);
  Status annotation(Node* node);
  static constexpr const char* kAnnotations =
      "@name, @from, @after, @label, @engine, @stream; @space and @alias behind a type";
  uint32_t engine(std::string_view name);
  Status control(Node* node);
  Status make_node(const Node& node);
  Status constant(const Token& name);

  // ---- Assignments of values ----

  Status value_assignments(uint32_t value);
  Status assignments(ReadAssignments* a);
  Status assignment(const Token& what, ReadAssignments* a);

  // An alias may name a value further down, or in another region.
  void keep(uint32_t value, const ReadAssignments& a);

  // At the end of a region; what is not known by then waits for the end of the graph.
  void resolve_aliases();
  Status late_aliases();

  Lexer& lex_;
  const ParseOptions& options_;
  std::unique_ptr<Graph> graph_;
  Graph& g_;
  std::vector<Frame> frames_;
  std::vector<std::pair<std::string, regie_engine_ref>> engines_;
  std::unordered_map<std::string, uint32_t> node_labels_;
  std::vector<Names> closed_;  // of regions that have ended
  std::vector<Alias> late_aliases_;
};

}  // namespace regie
