#include <unordered_map>

#include "text/grammar.h"
#include "text/text.h"

namespace regie {

namespace {

// `@engine("cpu")` and its like, as they come; what they may stand on is checked by whoever collects them.
struct Assignments {
  uint32_t space = REGIE_NONE;
  std::optional<Token> alias;
  uint64_t alias_offset = 0;
};

class Parser {
 public:
  Parser(Lexer& lexer, const ParseOptions& options)
      : lex_(lexer), options_(options), graph_(std::make_unique<Graph>()), g_(*graph_) {}

  Result<std::unique_ptr<Graph>> graph() {
    REGIE_TRY(lex_.expect("graph"));
    if (lex_.accept("@")) {
      REGIE_ASSIGN(std::string name, parse_name(lex_, "the graph's name"));
      g_.set_name(name);
    }
    REGIE_TRY(symbols_first());
    frames_.emplace_back();
    REGIE_TRY(parameters(0, true));
    REGIE_TRY(result_list(true));
    if (lex_.accept("where")) REGIE_TRY(symbols());
    if (lex_.accept("on")) REGIE_TRY(engines());
    if (lex_.accept("where")) REGIE_TRY(symbols());
    REGIE_TRY(lex_.expect("{"));
    REGIE_TRY(body());
    REGIE_TRY(late_aliases());
    if (!engines_.empty()) g_.set_engines(engines_);
    return std::move(graph_);
  }

 private:
  struct Result_ {
    std::optional<Token> label;  // absent: omitted
    std::optional<regie_type> type;
    Assignments assignments;
  };
  struct Node {  // one that is being read
    Token at;
    NodeSpec spec;
    std::vector<Result_> results;
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
    Names values;
    std::vector<Alias> aliases;
  };

  // ---- Names ----

  static Key key_of(const Token& t) { return {t.text, t.occurrence, t.is_unnamed_value()}; }
  std::string shown(const Token& t) const { return "'" + std::string(lex_.source(t, t)) + "'"; }

  Status define(const Token& t, uint32_t value) {
    auto [at, fresh] = frames_.back().values.emplace(key_of(t), Defined{value, t.line});
    if (fresh) return {};
    return lex_.error(t, shown(t) + " is defined twice; first in line " + std::to_string(at->second.line));
  }
  static std::string_view name_of(const Token& t) {
    return t.is_unnamed_value() ? std::string_view() : t.text;
  }

  // Of this region; or a constant of one around it.
  Result<uint32_t> look_up(const Token& t) const {
    Key key = key_of(t);
    bool outside = false;
    for (size_t i = frames_.size(); i-- > 0;) {
      auto at = frames_[i].values.find(key);
      if (at == frames_[i].values.end()) continue;
      if (i + 1 == frames_.size() || g_.is_constant(at->second.value)) return at->second.value;
      outside = true;
    }
    if (outside)
      return lex_.error(t, shown(t) +
                               " is a value of an enclosing region; make it an operand of the node that owns "
                               "this region, and an argument of the region");
    return lex_.error(t, shown(t) + " is not defined up to here");
  }

  // ---- Header ----

  // The ranges of symbols stand behind the types that use them, but must be known before, as they decide how
  // dimension expressions simplify.
  Status symbols_first() {
    Token start = lex_.peek();
    uint32_t depth = 0;
    while (!lex_.at_end() && lex_.peek().kind != TokenKind::kError) {
      const Token& t = lex_.peek();
      if (depth == 0 && t.is("{")) break;
      if (t.is("(")) ++depth;
      if (t.is(")") && depth) --depth;
      bool found = depth == 0 && t.is("where");
      lex_.next();
      if (!found) continue;
      REGIE_TRY(symbols());
      break;
    }
    lex_.rewind(start);
    return {};
  }

  Status symbols() {
    do {
      Token t = lex_.peek();
      if (t.kind != TokenKind::kIdentifier && t.kind != TokenKind::kString)
        return lex_.unexpected("a symbol, as in 'where N in 1..32'");
      lex_.next();
      REGIE_TRY(lex_.expect("in"));
      int64_t lower = 0, upper = INT64_MAX;
      if (!lex_.peek().is("..")) {
        REGIE_ASSIGN(Token n, lex_.expect(TokenKind::kInteger, "the least value, as in 1..32"));
        REGIE_ASSIGN(lower, read_int64(lex_, n));
      }
      REGIE_TRY(lex_.expect(".."));
      if (lex_.peek().kind == TokenKind::kInteger) {
        REGIE_ASSIGN(upper, read_int64(lex_, lex_.next()));
      }
      bool data = lex_.accept("data");
      if (g_.dims().symbol(t.text, lower, upper, data) == REGIE_DIM_UNKNOWN)
        return lex_.error(t, "the range of " + std::string(t.text) + " is empty");
    } while (lex_.accept(","));
    return {};
  }

  Status engines() {
    auto number = [&](uint32_t* to) -> Status {
      if (lex_.accept("_")) return *to = REGIE_NONE, Status();
      REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kInteger, "a number"));
      return index(t, to);
    };
    do {
      REGIE_ASSIGN(Token name,
                   lex_.expect(TokenKind::kString, "an engine, as in 'on \"cpu\" = \"host_cpu\" 0 space 0'"));
      REGIE_TRY(lex_.expect("="));
      REGIE_ASSIGN(Token device, lex_.expect(TokenKind::kString, "a device's name"));
      regie_engine_ref e{};
      e.device = str(device.text);
      REGIE_TRY(number(&e.device_index));
      REGIE_TRY(lex_.expect("space"));
      REGIE_TRY(number(&e.space));
      engines_.emplace_back(name.text, e);
    } while (lex_.accept(","));
    return {};
  }

  Status index(const Token& t, uint32_t* to) {
    REGIE_ASSIGN(uint64_t v, read_uint64(lex_, t));
    if (v >= REGIE_NONE) return lex_.error(t, "'" + std::string(t.text) + "' is too large");
    *to = static_cast<uint32_t>(v);
    return {};
  }

  Status parameters(uint32_t region, bool constants_too) {
    REGIE_TRY(lex_.expect("("));
    for (bool first = true; !lex_.accept(")"); first = false) {
      if (!first) REGIE_TRY(lex_.expect(",", "',' or ')'"));
      REGIE_ASSIGN(Token name, lex_.expect(TokenKind::kValue, "a parameter such as %x: f32[2]"));
      REGIE_TRY(lex_.expect(":"));
      uint32_t kind = REGIE_VALUE_ARGUMENT;
      if (constants_too && lex_.accept("const")) kind = REGIE_VALUE_CONSTANT;
      if (constants_too && lex_.accept("weight")) kind = REGIE_VALUE_WEIGHT;
      REGIE_ASSIGN(regie_type type, parse_type(lex_, g_));
      uint32_t v = kind == REGIE_VALUE_ARGUMENT ? g_.add_argument(region, type, name_of(name))
                                                : g_.add_abstract_constant(region, kind, type, name_of(name));
      REGIE_TRY(define(name, v));
      REGIE_TRY(value_assignments(v));
    }
    return {};
  }

  Status result_list(bool with_names) {
    REGIE_TRY(lex_.expect("->"));
    REGIE_TRY(lex_.expect("("));
    Frame& f = frames_.back();
    for (bool first = true; !lex_.accept(")"); first = false) {
      if (!first) REGIE_TRY(lex_.expect(",", "',' or ')'"));
      REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kValue, "a result such as %y"));
      f.results.push_back(t);
      f.output_names.emplace_back();
      if (with_names && lex_.accept("as")) {
        Token at = lex_.peek();
        REGIE_ASSIGN(f.output_names.back(), parse_name(lex_, "the output's name"));
        if (f.output_names.back()->empty()) return lex_.error(at, "an output's name must not be empty");
      }
    }
    return {};
  }

  // ---- Body ----

  Status body() {
    while (!frames_.empty()) {
      if (lex_.peek().is("}")) {
        REGIE_TRY(close_region());
        continue;
      }
      if (lex_.peek().kind == TokenKind::kEnd)
        return lex_.unexpected(frames_.size() == 1 ? "a node or '}'"
                                                   : "a node or '}' at the end of a region");
      REGIE_TRY(statement());
    }
    return {};
  }

  // Of the innermost region, whose '}' comes now; then its owner goes on.
  Status close_region() {
    Frame& f = frames_.back();
    std::vector<uint32_t> results;
    for (const Token& t : f.results) {
      REGIE_ASSIGN(uint32_t v, look_up(t));
      results.push_back(v);
    }
    g_.set_region_results(f.region, results);
    if (f.region == 0) REGIE_TRY(name_outputs());
    resolve_aliases();
    closed_.push_back(std::move(f.values));
    lex_.next();
    Node owner = std::move(f.owner);
    bool outermost = frames_.size() == 1;
    frames_.pop_back();
    return outermost ? Status() : finish_node(std::move(owner));
  }

  Status name_outputs() {
    const Frame& f = frames_.back();
    std::vector<std::string> names;
    std::unordered_map<std::string, uint32_t> seen;
    for (size_t i = 0; i < f.results.size(); ++i) {
      names.push_back(f.output_names[i] ? *f.output_names[i]
                                        : std::string(g_.output_name(static_cast<uint32_t>(i))));
      if (!seen.emplace(names.back(), 0).second)
        return lex_.error(f.results[i], "two outputs are named '" + names.back() + "'; tell them apart: " +
                                            std::string(lex_.source(f.results[i], f.results[i])) +
                                            " as \"…\"");
    }
    g_.set_output_names(names);
    return {};
  }

  Status statement() {
    Node node;
    node.at = lex_.peek();
    bool named = lex_.peek().kind == TokenKind::kValue || (lex_.peek().is("_") && !lex_.peek_next().is("("));
    if (named && lex_.peek_next().is(":") && lex_.peek().kind == TokenKind::kValue) {
      Token name = lex_.next();
      lex_.next();
      if (lex_.peek().is("const") || lex_.peek().is("weight")) return constant(name);
      Result_ r;
      r.label = name;
      REGIE_TRY(result_type(&r));
      node.results.push_back(std::move(r));
      if (lex_.accept(",")) REGIE_TRY(results(&node));
      REGIE_TRY(lex_.expect("=", "'=' and an operator"));
    } else if (named) {
      REGIE_TRY(results(&node));
      REGIE_TRY(lex_.expect("=", "'=' and an operator"));
    }
    node.at = lex_.peek();
    if (lex_.peek().kind != TokenKind::kIdentifier && lex_.peek().kind != TokenKind::kString)
      return lex_.unexpected(named ? "an operator such as Relu" : "a node such as %y = Relu(%x), or '}'");
    node.spec.op = lex_.next().text;
    if (node.spec.op.empty()) return lex_.error(node.at, "an operator's name must not be empty");
    REGIE_TRY(operands(&node));
    return finish_node(std::move(node));
  }

  Status results(Node* node) {
    do {
      Result_ r;
      if (lex_.peek().kind == TokenKind::kValue && lex_.peek().text == "_" && !lex_.peek().quoted) {
        lex_.next();
      } else if (!lex_.accept("_")) {
        REGIE_ASSIGN(r.label, lex_.expect(TokenKind::kValue, "a result such as %y, or _"));
        if (lex_.accept(":")) {
          REGIE_TRY(result_type(&r));
        } else {
          REGIE_TRY(assignments(&r.assignments));
        }
      }
      node->results.push_back(std::move(r));
    } while (lex_.accept(","));
    return {};
  }

  Status result_type(Result_* r) {
    REGIE_ASSIGN(r->type, parse_type(lex_, g_));
    return assignments(&r->assignments);
  }

  Status operands(Node* node) {
    REGIE_TRY(lex_.expect("("));
    for (bool first = true; !lex_.accept(")"); first = false) {
      if (!first) REGIE_TRY(lex_.expect(",", "',' or ')'"));
      const Token& t = lex_.peek();
      bool absent = t.is("_") || (t.kind == TokenKind::kValue && t.text == "_" && !t.quoted);
      if (absent) {
        lex_.next();
        node->spec.operands.push_back(REGIE_NONE);
        continue;
      }
      REGIE_ASSIGN(Token name,
                   lex_.expect(TokenKind::kValue, "an operand such as %x, or _ for one that is absent"));
      REGIE_ASSIGN(uint32_t v, look_up(name));
      node->spec.operands.push_back(v);
    }
    return {};
  }

  // Attributes, annotations and regions in any order, to the end of the statement. A region is read by the
  // main loop, which comes back here with what there is so far.
  Status finish_node(Node node) {
    for (;;) {
      if (lex_.peek().is("{")) {
        REGIE_TRY(attributes(&node));
      } else if (lex_.peek().is("@")) {
        REGIE_TRY(annotation(&node));
      } else if (lex_.peek().is("region")) {
        return open_region(std::move(node));
      } else {
        return make_node(node);
      }
    }
  }

  Status open_region(Node owner) {
    lex_.next();
    std::string name;
    if (lex_.accept("@")) {
      REGIE_ASSIGN(name, parse_name(lex_, "the region's name"));
    }
    uint32_t region = g_.add_region(name, frames_.back().region);
    owner.spec.regions.push_back(region);
    frames_.emplace_back();
    frames_.back().region = region;
    frames_.back().owner = std::move(owner);
    REGIE_TRY(parameters(region, false));
    REGIE_TRY(result_list(false));
    return lex_.expect("{");
  }

  Status attributes(Node* node) {
    lex_.next();
    for (bool first = true; !lex_.accept("}"); first = false) {
      if (!first) REGIE_TRY(lex_.expect(",", "',' or '}'"));
      Token at = lex_.peek();
      REGIE_ASSIGN(std::string name, parse_name(lex_, "an attribute such as axis = 1"));
      for (const AttrValue& a : node->spec.attrs)
        if (a.name == name) return lex_.error(at, "attribute '" + name + "' is there twice");
      REGIE_TRY(lex_.expect("="));
      REGIE_ASSIGN(AttrValue a, parse_attr_value(lex_, g_, std::move(name), options_));
      node->spec.attrs.push_back(std::move(a));
    }
    return {};
  }

  Status annotation(Node* node) {
    lex_.next();
    REGIE_ASSIGN(Token what,
                 lex_.expect(TokenKind::kIdentifier, "an annotation: " + std::string(kAnnotations)));
    REGIE_TRY(lex_.expect("("));
    if (what.is("name")) {
      REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kString, "the node's name"));
      node->spec.name = t.text;
    } else if (what.is("from")) {
      do {
        REGIE_ASSIGN(Token t,
                     lex_.expect(TokenKind::kString, "an operator of the framework, as in \"conv1 (Conv)\""));
        node->spec.origins.push_back(g_.add_origin(t.text));
      } while (lex_.accept(","));
    } else if (what.is("after")) {
      do {
        REGIE_TRY(control(node));
      } while (lex_.accept(","));
    } else if (what.is("label")) {
      REGIE_ASSIGN(node->label, lex_.expect(TokenKind::kInteger, "a number"));
    } else if (what.is("engine")) {
      REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kString, "an engine's name"));
      node->engine = engine(t.text);
    } else if (what.is("stream")) {
      REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kInteger, "a stream's number"));
      REGIE_TRY(index(t, &node->stream));
    } else if ((what.is("space") || what.is("alias")) && node->results.size() == 1) {
      // As good as behind the type, where there is only one result.
      REGIE_TRY(assignment(what, &node->results[0].assignments));
    } else {
      return lex_.error(what,
                        "unknown annotation '@" + std::string(what.text) + "' here; known: " + kAnnotations);
    }
    return lex_.expect(")", "')' or ','");
  }
  static constexpr const char* kAnnotations =
      "@name, @from, @after, @label, @engine, @stream; @space and @alias behind a type";

  uint32_t engine(std::string_view name) {
    for (uint32_t i = 0; i < engines_.size(); ++i)
      if (engines_[i].first == name) return i;
    regie_engine_ref e{};
    e.device_index = e.space = REGIE_NONE;
    engines_.emplace_back(name, e);
    return static_cast<uint32_t>(engines_.size() - 1);
  }

  Status control(Node* node) {
    Token t = lex_.peek();
    if (t.kind == TokenKind::kInteger) {
      lex_.next();
      auto at = node_labels_.find(std::string(t.text));
      if (at == node_labels_.end())
        return lex_.error(t, "no node up to here has @label(" + std::string(t.text) + ")");
      node->spec.control.push_back(at->second);
    } else {
      REGIE_ASSIGN(Token name,
                   lex_.expect(TokenKind::kValue, "a value of the node to wait for, or its label"));
      REGIE_ASSIGN(uint32_t v, look_up(name));
      if (g_.value(v).kind != REGIE_VALUE_RESULT)
        return lex_.error(name, shown(name) + " is made by no node");
      node->spec.control.push_back(g_.value(v).owner);
    }
    if (g_.node(node->spec.control.back()).region != frames_.back().region)
      return lex_.error(t, "a node can wait for nodes of its own region only");
    return {};
  }

  Status make_node(const Node& node) {
    NodeSpec spec = node.spec;
    spec.result_count = static_cast<uint32_t>(node.results.size());
    for (const Result_& r : node.results) {
      spec.omitted.push_back(!r.label);
      spec.result_names.emplace_back(r.label ? name_of(*r.label) : std::string_view());
    }
    uint32_t n = g_.add_node(frames_.back().region, spec);
    g_.set_engine(n, node.engine);
    g_.set_stream(n, node.stream);
    if (node.label && !node_labels_.emplace(std::string(node.label->text), n).second)
      return lex_.error(*node.label, "another node has this label");
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Result_& r = node.results[i];
      if (!r.label) continue;
      uint32_t v = g_.results(n)[i];
      REGIE_TRY(define(*r.label, v));
      if (r.type) g_.set_type(v, *r.type);
      keep(v, r.assignments);
    }
    return {};
  }

  Status constant(const Token& name) {
    uint32_t kind = lex_.next().text == "weight" ? REGIE_VALUE_WEIGHT : REGIE_VALUE_CONSTANT;
    Token at = lex_.peek();
    REGIE_ASSIGN(regie_type type, parse_type(lex_, g_));
    Assignments set;
    REGIE_TRY(assignments(&set));
    Tensor tensor;
    if (lex_.accept("=")) {
      REGIE_ASSIGN(std::vector<int64_t> dims, constant_dims(lex_, at, type));
      Token data = lex_.peek();
      REGIE_ASSIGN(tensor, parse_tensor_data(lex_, type.elem, dims, options_));
      bool packed = type.format != REGIE_FORMAT_ND;
      if (tensor &&
          (tensor.elem() != type.elem ||
           (!packed && !std::equal(dims.begin(), dims.end(), tensor.dims().begin(), tensor.dims().end()))))
        return lex_.error(data, "the bytes known by this digest are of another type");
    }
    uint32_t region = frames_.back().region;
    uint32_t v = tensor ? g_.add_constant(region, kind, std::move(tensor), name_of(name))
                        : g_.add_abstract_constant(region, kind, type, name_of(name));
    g_.set_type(v, type);
    REGIE_TRY(define(name, v));
    keep(v, set);
    return {};
  }

  // ---- Assignments of values ----

  Status value_assignments(uint32_t value) {
    Assignments a;
    REGIE_TRY(assignments(&a));
    keep(value, a);
    return {};
  }

  Status assignments(Assignments* a) {
    while (lex_.peek().is("@")) {
      lex_.next();
      Token what = lex_.peek();
      if (!what.is("space") && !what.is("alias")) return lex_.unexpected("@space or @alias behind a type");
      lex_.next();
      REGIE_TRY(lex_.expect("("));
      REGIE_TRY(assignment(what, a));
      REGIE_TRY(lex_.expect(")"));
    }
    return {};
  }

  Status assignment(const Token& what, Assignments* a) {
    if (what.is("space")) {
      REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kInteger, "a memory space's number"));
      return index(t, &a->space);
    }
    REGIE_ASSIGN(a->alias, lex_.expect(TokenKind::kValue, "the value whose bytes are shared"));
    REGIE_TRY(lex_.expect(",", "',' and an offset in bytes"));
    REGIE_ASSIGN(Token t, lex_.expect(TokenKind::kInteger, "an offset in bytes"));
    REGIE_ASSIGN(a->alias_offset, read_uint64(lex_, t));
    return {};
  }

  // An alias may name a value further down, or in another region.
  void keep(uint32_t value, const Assignments& a) {
    g_.set_space(value, a.space);
    if (a.alias) frames_.back().aliases.push_back({value, *a.alias, a.alias_offset});
  }

  // At the end of a region; what is not known by then waits for the end of the graph.
  void resolve_aliases() {
    for (const Alias& a : frames_.back().aliases) {
      auto own = frames_.back().values.find(key_of(a.base));
      if (own != frames_.back().values.end()) {
        g_.set_alias(a.value, own->second.value, a.offset);
      } else {
        late_aliases_.push_back(a);
      }
    }
  }

  Status late_aliases() {
    if (late_aliases_.empty()) return {};
    Names all;
    for (Names& names : closed_) all.merge(names);
    for (const Alias& a : late_aliases_) {
      auto at = all.find(key_of(a.base));
      if (at == all.end()) return lex_.error(a.base, shown(a.base) + " is not defined anywhere");
      g_.set_alias(a.value, at->second.value, a.offset);
    }
    return {};
  }

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

}  // namespace

Result<std::vector<std::unique_ptr<Graph>>> parse_all(std::string_view text, const std::string& file_name,
                                                      const ParseOptions& options) {
  Lexer lexer(text, file_name);
  std::vector<std::unique_ptr<Graph>> graphs;
  while (!lexer.at_end()) {
    REGIE_ASSIGN(std::unique_ptr<Graph> g, Parser(lexer, options).graph());
    graphs.push_back(std::move(g));
  }
  return graphs;
}

Result<std::unique_ptr<Graph>> parse(std::string_view text, const std::string& file_name,
                                     const ParseOptions& options) {
  Lexer lexer(text, file_name);
  REGIE_ASSIGN(std::unique_ptr<Graph> g, Parser(lexer, options).graph());
  if (!lexer.at_end()) return lexer.unexpected("the end of the text after one graph");
  return g;
}

}  // namespace regie
