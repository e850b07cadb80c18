#include "text/grammar.h"

#include <algorithm>

#include "text/elements.h"

namespace regie {

namespace {

struct FormatName {
  std::string_view name;
  uint32_t kind;
};
constexpr FormatName kFormats[] = {{"ND", REGIE_FORMAT_ND},
                                   {"NCHW", REGIE_FORMAT_NCHW},
                                   {"NHWC", REGIE_FORMAT_NHWC},
                                   {"NC1HWC0", REGIE_FORMAT_NC1HWC0},
                                   {"FRACTAL_Z", REGIE_FORMAT_FRACTAL_Z},
                                   {"FRACTAL_NZ", REGIE_FORMAT_FRACTAL_NZ}};
constexpr uint32_t kMostParameter = 0x7fff;

std::string known_formats() {
  std::string out;
  for (const FormatName& f : kFormats) out += std::string(f.name) + ", ";
  return out + "opaque<index>, kind<number, parameter>";
}

// The text of one dimension ends at ',' or ']' outside of its own brackets; the dimension table knows the
// rest.
Result<regie_dim> parse_dim(Lexer& lexer, Graph& graph) {
  Token first = lexer.peek(), last = first;
  if (first.is(",") || first.is("]")) return lexer.unexpected("a dimension");
  uint32_t depth = 0, tokens = 0;
  while (depth > 0 || !(lexer.peek().is(",") || lexer.peek().is("]"))) {
    const Token& t = lexer.peek();
    if (t.kind == TokenKind::kEnd || t.kind == TokenKind::kError)
      return lexer.unexpected("',' or ']' after a dimension");
    if (t.is("(")) ++depth;
    if (t.is(")") && depth-- == 0) return lexer.unexpected("',' or ']' after a dimension");
    last = lexer.next();
    ++tokens;
  }
  if (tokens == 1 && first.is("?")) return REGIE_DIM_UNKNOWN;
  if (tokens == 1 && first.kind == TokenKind::kInteger) {
    REGIE_ASSIGN(int64_t v, read_int64(lexer, first));
    if (v < 0)
      return lexer.error(first, "a dimension must not be negative; one that is not known is written '?'");
    return v;
  }
  Result<regie_dim> d = graph.dims().parse(lexer.source(first, last), lexer.place(first));
  if (d.ok() && *d == REGIE_DIM_UNKNOWN)
    return lexer.error(first, "this dimension is too large, or divides by zero");
  return d;
}

Status parse_dims(Lexer& lexer, Graph& graph, regie_type* t) {
  REGIE_TRY(
      lexer.expect("[", "'[' and dimensions, e.g. [N,3], [] for a scalar, [*] where the rank is not known"));
  if (lexer.accept("*")) {
    t->rank = -1;
    return lexer.expect("]");
  }
  std::vector<regie_dim> dims;
  while (!lexer.accept("]")) {
    if (!dims.empty()) REGIE_TRY(lexer.expect(",", "',' or ']'"));
    REGIE_ASSIGN(regie_dim d, parse_dim(lexer, graph));
    dims.push_back(d);
  }
  regie_type sized = graph.make_type(t->elem, dims);
  t->rank = sized.rank;
  t->dims = sized.dims;
  return {};
}

}  // namespace

std::string spell_format(regie_format format) {
  if (format & REGIE_FORMAT_OPAQUE_BIT)
    return "opaque<" + std::to_string(format & ~REGIE_FORMAT_OPAQUE_BIT) + ">";
  uint32_t kind = format & 0xffff, parameter = format >> 16;
  for (const FormatName& f : kFormats)
    if (f.kind == kind) return std::string(f.name) + (parameter ? "<" + std::to_string(parameter) + ">" : "");
  return "kind<" + std::to_string(kind) + ", " + std::to_string(parameter) + ">";
}

Result<regie_format> parse_format(Lexer& lexer) {
  REGIE_ASSIGN(Token name, lexer.expect(TokenKind::kIdentifier, "a format: " + known_formats()));
  auto number = [&](uint64_t most) -> Result<uint32_t> {
    REGIE_ASSIGN(Token t, lexer.expect(TokenKind::kInteger, "a number"));
    REGIE_ASSIGN(uint64_t v, read_uint64(lexer, t));
    if (v > most) return lexer.error(t, "this number is too large for a format");
    return static_cast<uint32_t>(v);
  };
  if (name.is("opaque")) {
    REGIE_TRY(lexer.expect("<"));
    REGIE_ASSIGN(uint32_t index, number(~REGIE_FORMAT_OPAQUE_BIT));
    REGIE_TRY(lexer.expect(">"));
    return REGIE_FORMAT_OPAQUE_BIT | index;
  }
  uint32_t kind = 0, parameter = 0;
  if (name.is("kind")) {
    REGIE_TRY(lexer.expect("<"));
    REGIE_ASSIGN(kind, number(0xffff));
    REGIE_TRY(lexer.expect(","));
    REGIE_ASSIGN(parameter, number(kMostParameter));
    REGIE_TRY(lexer.expect(">"));
    return kind | parameter << 16;
  }
  auto known = std::find_if(std::begin(kFormats), std::end(kFormats),
                            [&](const FormatName& f) { return name.is(f.name); });
  if (known == std::end(kFormats))
    return lexer.error(name, "unknown format '" + std::string(name.text) + "'; known: " + known_formats());
  kind = known->kind;
  if (lexer.accept("<")) {
    REGIE_ASSIGN(parameter, number(kMostParameter));
    REGIE_TRY(lexer.expect(">"));
  }
  return kind | parameter << 16;
}

Result<regie_type> parse_type(Lexer& lexer, Graph& graph) {
  regie_type t{};
  t.rank = -1;
  uint32_t closing = 0;
  if (lexer.peek().is("opt") && lexer.peek_next().is("(")) {
    lexer.next();
    lexer.next();
    t.container = REGIE_OPTIONAL;
    ++closing;
  }
  if (lexer.peek().is("seq") && lexer.peek_next().is("(")) {
    lexer.next();
    lexer.next();
    t.container = t.container == REGIE_OPTIONAL ? REGIE_OPTIONAL_SEQUENCE : REGIE_SEQUENCE;
    ++closing;
  }
  if (!lexer.accept("?")) {
    if (lexer.peek().kind != TokenKind::kIdentifier) return lexer.unexpected("a type such as f32[2,3]");
    Token name = lexer.next();
    auto elem = elem_from_name(name.text);
    if (!elem)
      return lexer.error(name, "unknown element type '" + std::string(name.text) +
                                   "'; known: f32, f64, f16, bf16, i8 … i64, u8 … u64, bool, string, …");
    t.elem = *elem;
  }
  REGIE_TRY(parse_dims(lexer, graph, &t));
  for (; closing; --closing) REGIE_TRY(lexer.expect(")"));
  if (lexer.accept(":")) {
    REGIE_ASSIGN(t.format, parse_format(lexer));
    if (lexer.accept("/")) {
      REGIE_ASSIGN(t.origin_format, parse_format(lexer));
    }
  }
  return t;
}

Result<std::string> parse_name(Lexer& lexer, std::string_view what) {
  if (lexer.peek().kind != TokenKind::kIdentifier && lexer.peek().kind != TokenKind::kString)
    return lexer.unexpected(what);
  return std::string(lexer.next().text);
}

Result<std::vector<int64_t>> constant_dims(const Lexer& lexer, const Token& at, const regie_type& type) {
  bool known = type.rank >= 0 && type.elem != REGIE_ELEM_UNKNOWN && type.container == REGIE_TENSOR &&
               std::all_of(type.dims, type.dims + type.rank, [](regie_dim d) { return d >= 0; });
  if (!known) return lexer.error(at, "what has data must be a tensor with constant dimensions");
  return std::vector<int64_t>(type.dims, type.dims + type.rank);
}

Result<Tensor> parse_elements(Lexer& lexer, regie_elem elem, std::span<const int64_t> dims) {
  Token at = lexer.peek();
  uint64_t elements = static_cast<uint64_t>(element_count(dims)), count = spelled_count(elem, elements);
  // Each element takes at least one byte of text, so a short text cannot ask for much memory.
  if (count > lexer.source().size())
    return lexer.error(at, "expected " + std::to_string(count) + " elements; the text is shorter than that");
  auto wrong_count = [&] {
    return lexer.error(at, "expected " + std::to_string(count) + (count == 1 ? " element" : " elements"));
  };
  std::vector<std::string> strings;
  Tensor tensor;
  if (elem != REGIE_STRING) {
    Result<Tensor> made = Tensor::try_zeros(elem, dims, "this constant");
    if (!made.ok()) return Status::error(made.status().code(), made.status().message(), lexer.place(at));
    tensor = std::move(made).value();
  }
  uint64_t done = 0;
  uint32_t depth = 0;
  bool separated = true;  // an element or '[' may come
  do {
    if (separated && lexer.accept("[")) {
      ++depth;
    } else if (depth > 0 && lexer.accept("]")) {
      --depth;
      separated = false;
    } else if (depth > 0 && !separated && lexer.accept(",")) {
      separated = true;
    } else if (separated) {
      if (done == count) return wrong_count();
      if (elem == REGIE_STRING) {
        REGIE_ASSIGN(Token t, lexer.expect(TokenKind::kString, "a string"));
        strings.emplace_back(t.text);
        ++done;
      } else {
        REGIE_TRY(read_element(lexer, elem, tensor.mutable_data(), done++));
      }
      separated = false;
    } else {
      return lexer.unexpected("',' or ']'");
    }
  } while (depth > 0);
  if (done != count) return wrong_count();
  if (elem != REGIE_STRING) return tensor;
  std::vector<regie_str> views;
  for (const std::string& s : strings) views.push_back(str(std::string_view(s)));
  regie_tensor t{};
  t.elem = elem;
  t.rank = static_cast<int32_t>(dims.size());
  t.dims = dims.data();
  t.data = views.data();
  t.bytes = elem_bytes(elem, elements);
  return Tensor::copy(t);
}

Result<Tensor> parse_tensor_data(Lexer& lexer, regie_elem elem, std::span<const int64_t> dims,
                                 const ParseOptions& options) {
  if (!(lexer.peek().is("digest") && lexer.peek_next().is("("))) return parse_elements(lexer, elem, dims);
  lexer.next();
  lexer.next();
  REGIE_ASSIGN(Token digest, lexer.expect(TokenKind::kString, "a digest"));
  REGIE_TRY(lexer.expect(")"));
  if (!options.constants) return Tensor();
  Result<Tensor> found = options.constants(digest.text, elem, dims);
  if (found.ok()) return found;
  Status status = std::move(found).status();
  status.set_where(lexer.place(digest));
  return status;
}

namespace {

Result<AttrValue> parse_list(Lexer& lexer, AttrValue a, bool any_kind) {
  REGIE_TRY(lexer.expect("["));
  std::vector<Token> numbers;
  bool floats = a.kind == REGIE_ATTR_FLOATS, strings = a.kind == REGIE_ATTR_STRINGS;
  bool first = true;
  while (!lexer.accept("]")) {
    if (!first) REGIE_TRY(lexer.expect(",", "',' or ']'"));
    const Token& t = lexer.peek();
    if (t.kind == TokenKind::kString && (strings || (any_kind && first))) {
      strings = true;
      a.strings.emplace_back(lexer.next().text);
    } else if (is_number(t) && !strings) {
      floats |= any_kind && t.kind != TokenKind::kInteger;
      numbers.push_back(lexer.next());
    } else {
      return lexer.unexpected(strings                       ? "a string"
                              : numbers.empty() && any_kind ? "a number or a string"
                                                            : "a number");
    }
    first = false;
  }
  a.kind = strings ? REGIE_ATTR_STRINGS : floats ? REGIE_ATTR_FLOATS : REGIE_ATTR_INTS;
  for (const Token& t : numbers) {
    if (floats) {
      REGIE_ASSIGN(double v, read_float(lexer, t));
      a.floats.push_back(v);
    } else {
      REGIE_ASSIGN(int64_t v, read_int64(lexer, t));
      a.ints.push_back(v);
    }
  }
  return a;
}

}  // namespace

Result<AttrValue> parse_attr_value(Lexer& lexer, Graph& graph, std::string name,
                                   const ParseOptions& options) {
  AttrValue a;
  a.name = std::move(name);
  const Token& t = lexer.peek();
  if (t.is("[")) return parse_list(lexer, std::move(a), true);
  if (lexer.peek_next().is("[") && (t.is("ints") || t.is("floats") || t.is("strings"))) {
    a.kind = t.is("ints") ? REGIE_ATTR_INTS : t.is("floats") ? REGIE_ATTR_FLOATS : REGIE_ATTR_STRINGS;
    lexer.next();
    return parse_list(lexer, std::move(a), false);
  }
  if (t.kind == TokenKind::kString) {
    a.kind = REGIE_ATTR_STRING;
    a.s = lexer.next().text;
    return a;
  }
  if (t.kind == TokenKind::kInteger) {
    a.kind = REGIE_ATTR_INT;
    REGIE_ASSIGN(a.i, read_int64(lexer, lexer.next()));
    return a;
  }
  if (is_number(t)) {
    a.kind = REGIE_ATTR_FLOAT;
    REGIE_ASSIGN(a.f, read_float(lexer, lexer.next()));
    return a;
  }
  if (t.kind != TokenKind::kIdentifier || !lexer.peek_next().is("["))
    return lexer.unexpected("a value: 1, 1.0, \"text\", [1, 2], or a tensor such as f32[2] [1.0, 2.0]");
  Token at = t;
  REGIE_ASSIGN(regie_type type, parse_type(lexer, graph));
  REGIE_ASSIGN(std::vector<int64_t> dims, constant_dims(lexer, at, type));
  a.kind = REGIE_ATTR_TENSOR;
  REGIE_ASSIGN(a.tensor, parse_tensor_data(lexer, type.elem, dims, options));
  if (!a.tensor)
    return lexer.error(at, "nobody knows the bytes of this tensor's digest; an attribute cannot do without");
  return a;
}

}  // namespace regie
