// Headers of graphs and regions, and the assignments of values.
#include "text/graph_parser.h"

namespace regie {

Status GraphParser::symbols_first() {
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

Status GraphParser::symbols() {
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
    if (lower < 0)
      return lex_.error(t, "the range of " + std::string(t.text) + " begins below 0, and no dimension does");
    bool data = lex_.accept("data");
    if (g_.dims().symbol(t.text, lower, upper, data) == REGIE_DIM_UNKNOWN)
      return lex_.error(t, "the range of " + std::string(t.text) + " is empty");
  } while (lex_.accept(","));
  return {};
}

Status GraphParser::engines() {
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

Status GraphParser::index(const Token& t, uint32_t* to) {
  REGIE_ASSIGN(uint64_t v, read_uint64(lex_, t));
  if (v >= REGIE_NONE) return lex_.error(t, "'" + std::string(t.text) + "' is too large");
  *to = static_cast<uint32_t>(v);
  return {};
}

Status GraphParser::parameters(uint32_t region, bool constants_too) {
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
    if (constants_too && kind == REGIE_VALUE_ARGUMENT && lex_.accept("=")) REGIE_TRY(default_value(v));
  }
  return {};
}

Status GraphParser::default_value(uint32_t argument) {
  const Token at = lex_.peek();
  REGIE_ASSIGN(const regie_type type, parse_type(lex_, g_));
  REGIE_ASSIGN(const std::vector<int64_t> dims, constant_dims(lex_, at, type));
  REGIE_ASSIGN(Tensor tensor, parse_tensor_data(lex_, type.elem, dims, options_));
  if (!tensor) return {};  // nobody knows its bytes: the input has to be given
  const Status set = g_.set_default(argument, std::move(tensor));
  return set.ok() ? set : lex_.error(at, set.message());
}

Status GraphParser::result_list(bool with_names) {
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
    if (with_names && lex_.accept("shaped")) {
      REGIE_ASSIGN(const Token shape, lex_.expect(TokenKind::kValue, "the value that is its dimensions"));
      f.shapes.emplace_back(f.results.size() - 1, shape);
    }
  }
  return {};
}

Status GraphParser::name_outputs() {
  const Frame& f = frames_.back();
  std::vector<std::string> names;
  std::unordered_map<std::string, uint32_t> seen;
  for (size_t i = 0; i < f.results.size(); ++i) {
    names.push_back(f.output_names[i] ? *f.output_names[i]
                                      : std::string(g_.output_name(static_cast<uint32_t>(i))));
    if (!seen.emplace(names.back(), 0).second)
      return lex_.error(f.results[i], "two outputs are named '" + names.back() + "'; tell them apart: " +
                                          std::string(lex_.source(f.results[i], f.results[i])) + " as \"…\"");
  }
  std::vector<uint32_t> shapes(f.shapes.empty() ? 0 : f.results.size() + f.shapes.size(), REGIE_NONE);
  for (const auto& [output, shape] : f.shapes) {
    shapes[output] = static_cast<uint32_t>(names.size());
    std::string name(g_.output_name(static_cast<uint32_t>(names.size())));
    while (!seen.emplace(name, 0).second) name += '_';
    names.push_back(std::move(name));
  }
  g_.set_output_names(names);
  g_.set_output_shapes(std::move(shapes));
  return {};
}

uint32_t GraphParser::engine(std::string_view name) {
  for (uint32_t i = 0; i < engines_.size(); ++i)
    if (engines_[i].first == name) return i;
  regie_engine_ref e{};
  e.device_index = e.space = REGIE_NONE;
  engines_.emplace_back(name, e);
  return static_cast<uint32_t>(engines_.size() - 1);
}

Status GraphParser::value_assignments(uint32_t value) {
  ReadAssignments a;
  REGIE_TRY(assignments(&a));
  keep(value, a);
  return {};
}

Status GraphParser::assignments(ReadAssignments* a) {
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

Status GraphParser::assignment(const Token& what, ReadAssignments* a) {
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

void GraphParser::keep(uint32_t value, const ReadAssignments& a) {
  g_.set_space(value, a.space);
  if (a.alias) frames_.back().aliases.push_back({value, *a.alias, a.alias_offset});
}

void GraphParser::resolve_aliases() {
  for (const Alias& a : frames_.back().aliases) {
    auto own = frames_.back().values.find(key_of(a.base));
    if (own != frames_.back().values.end()) {
      g_.set_alias(a.value, own->second.value, a.offset);
    } else {
      late_aliases_.push_back(a);
    }
  }
}

Status GraphParser::late_aliases() {
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

}  // namespace regie
