#include "ir/verify.h"
#include "text/graph_parser.h"

namespace regie {

Result<std::unique_ptr<Graph>> GraphParser::graph() {
  Token start = lex_.peek();
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
  if (auto fault = find_fault(g_)) return lex_.error(start, *fault);
  return std::move(graph_);
}

Status GraphParser::define(const Token& t, uint32_t value) {
  auto [at, fresh] = frames_.back().values.emplace(key_of(t), Defined{value, t.line});
  if (fresh) return {};
  return lex_.error(t, shown(t) + " is defined twice; first in line " + std::to_string(at->second.line));
}

std::string_view GraphParser::name_of(const Token& t) {
  return t.is_unnamed_value() ? std::string_view() : t.text;
}

Result<uint32_t> GraphParser::look_up(const Token& t) const {
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

Status GraphParser::body() {
  while (!frames_.empty()) {
    if (lex_.peek().is("}")) {
      REGIE_TRY(close_region());
      continue;
    }
    if (lex_.peek().kind == TokenKind::kEnd)
      return lex_.unexpected(frames_.size() == 1 ? "a node or '}'" : "a node or '}' at the end of a region");
    REGIE_TRY(statement());
  }
  return {};
}

Status GraphParser::close_region() {
  Frame& f = frames_.back();
  std::vector<uint32_t> results;
  for (const Token& t : f.results) {
    REGIE_ASSIGN(uint32_t v, look_up(t));
    results.push_back(v);
  }
  for (const auto& [output, shape] : f.shapes) {
    REGIE_ASSIGN(uint32_t v, look_up(shape));
    const regie_type& type = g_.value(v).type;
    if ((type.elem != REGIE_I64 && type.elem != REGIE_ELEM_UNKNOWN) || type.rank > 1 || type.rank == 0)
      return lex_.error(shape, "dimensions are a list of i64");
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

Status GraphParser::statement() {
  Node node;
  node.at = lex_.peek();
  bool named = lex_.peek().kind == TokenKind::kValue || (lex_.peek().is("_") && !lex_.peek_next().is("("));
  if (named && lex_.peek_next().is(":") && lex_.peek().kind == TokenKind::kValue) {
    Token name = lex_.next();
    lex_.next();
    if (lex_.peek().is("const") || lex_.peek().is("weight")) return constant(name);
    ReadResult r;
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
    return lex_.unexpected(named ? "the name of an operator" : "a node such as %y = Op(%x), or '}'");
  node.spec.op = lex_.next().text;
  if (node.spec.op.empty()) return lex_.error(node.at, "an operator's name must not be empty");
  REGIE_TRY(operands(&node));
  return finish_node(std::move(node));
}

Status GraphParser::results(Node* node) {
  do {
    ReadResult r;
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

Status GraphParser::result_type(ReadResult* r) {
  REGIE_ASSIGN(r->type, parse_type(lex_, g_));
  return assignments(&r->assignments);
}

Status GraphParser::operands(Node* node) {
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

Status GraphParser::finish_node(Node node) {
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

Status GraphParser::open_region(Node owner) {
  if (frames_.size() >= options_.max_depth)
    return lex_.error(lex_.peek(), "regions are nested deeper than " + std::to_string(options_.max_depth) +
                                       "; split the model");
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

Status GraphParser::attributes(Node* node) {
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

Status GraphParser::annotation(Node* node) {
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
                   lex_.expect(TokenKind::kString, "an operator of the framework, as in \"conv1 (Op)\""));
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

Status GraphParser::control(Node* node) {
  Token t = lex_.peek();
  if (t.kind == TokenKind::kInteger) {
    lex_.next();
    auto at = node_labels_.find(std::string(t.text));
    if (at == node_labels_.end())
      return lex_.error(t, "no node up to here has @label(" + std::string(t.text) + ")");
    node->spec.control.push_back(at->second);
  } else {
    REGIE_ASSIGN(Token name, lex_.expect(TokenKind::kValue, "a value of the node to wait for, or its label"));
    REGIE_ASSIGN(uint32_t v, look_up(name));
    if (g_.value(v).kind != REGIE_VALUE_RESULT) return lex_.error(name, shown(name) + " is made by no node");
    node->spec.control.push_back(g_.value(v).owner);
  }
  if (g_.node(node->spec.control.back()).region != frames_.back().region)
    return lex_.error(t, "a node can wait for nodes of its own region only");
  return {};
}

Status GraphParser::make_node(const Node& node) {
  NodeSpec spec = node.spec;
  spec.result_count = static_cast<uint32_t>(node.results.size());
  for (const ReadResult& r : node.results) {
    spec.omitted.push_back(!r.label);
    spec.result_names.emplace_back(r.label ? name_of(*r.label) : std::string_view());
  }
  uint32_t n = g_.add_node(frames_.back().region, spec);
  g_.set_engine(n, node.engine);
  g_.set_stream(n, node.stream);
  if (node.label && !node_labels_.emplace(std::string(node.label->text), n).second)
    return lex_.error(*node.label, "another node has this label");
  for (size_t i = 0; i < node.results.size(); ++i) {
    const ReadResult& r = node.results[i];
    if (!r.label) continue;
    uint32_t v = g_.results(n)[i];
    REGIE_TRY(define(*r.label, v));
    if (r.type) g_.set_type(v, *r.type);
    keep(v, r.assignments);
  }
  return {};
}

Status GraphParser::constant(const Token& name) {
  uint32_t kind = lex_.next().text == "weight" ? REGIE_VALUE_WEIGHT : REGIE_VALUE_CONSTANT;
  Token at = lex_.peek();
  REGIE_ASSIGN(regie_type type, parse_type(lex_, g_));
  ReadAssignments set;
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

Result<std::vector<std::unique_ptr<Graph>>> parse_all(std::string_view text, const std::string& file_name,
                                                      const ParseOptions& options) {
  Lexer lexer(text, file_name);
  std::vector<std::unique_ptr<Graph>> graphs;
  while (!lexer.at_end()) {
    REGIE_ASSIGN(std::unique_ptr<Graph> g, GraphParser(lexer, options).graph());
    graphs.push_back(std::move(g));
  }
  return graphs;
}

Result<std::unique_ptr<Graph>> parse(std::string_view text, const std::string& file_name,
                                     const ParseOptions& options) {
  Lexer lexer(text, file_name);
  REGIE_ASSIGN(std::unique_ptr<Graph> g, GraphParser(lexer, options).graph());
  if (!lexer.at_end()) return lexer.unexpected("the end of the text after one graph");
  return g;
}

}  // namespace regie
