// Writes ONNX models byte by byte, right ones and wrong ones: field numbers of the published format and
// nothing of the frontend's own code, so that both are checked against the format.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onnx_test {

class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& signed_number(uint32_t field, int64_t value) {
    return number(field, static_cast<uint64_t>(value));
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  Message& single(uint32_t field, float value) {
    varint(field << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes_ += static_cast<char>(v | 0x80);
    bytes_ += static_cast<char>(v);
  }
  std::string bytes_;
};

enum Type {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kHalf = 10,
  kDouble = 11
};
enum Kind {
  kAttrFloat = 1,
  kAttrInt = 2,
  kAttrString = 3,
  kAttrTensor = 4,
  kAttrGraph = 5,
  kAttrFloats = 6,
  kAttrInts = 7,
  kAttrStrings = 8,
  kAttrSparse = 11
};

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A tensor without data.
inline Message tensor_head(std::string_view name, int type, const std::vector<int64_t>& dims) {
  Message t;
  for (int64_t d : dims) t.signed_number(1, d);
  t.number(2, static_cast<uint64_t>(type));
  if (!name.empty()) t.text(8, name);
  return t;
}
inline Message tensor(std::string_view name, int type, const std::vector<int64_t>& dims,
                      std::string_view raw_data) {
  return tensor_head(name, type, dims).text(9, raw_data);
}
inline Message floats(std::string_view name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
  return tensor(name, kFloat, dims, raw(values));
}
inline Message longs(std::string_view name, const std::vector<int64_t>& dims,
                     const std::vector<int64_t>& values) {
  return tensor(name, kInt64, dims, raw(values));
}
inline Message external(std::string_view name, int type, const std::vector<int64_t>& dims,
                        std::string_view location,
                        const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Message t = tensor_head(name, type, dims);
  t.message(13, Message().text(1, "location").text(2, location));
  for (const auto& [key, value] : more) t.message(13, Message().text(1, key).text(2, value));
  return t.number(14, 1);
}

inline Message attr_head(std::string_view name, int kind) {
  return Message().text(1, name).number(20, static_cast<uint64_t>(kind));
}
inline Message attr(std::string_view name, int64_t v) {
  return attr_head(name, kAttrInt).signed_number(3, v);
}
inline Message attr_float(std::string_view name, float v) { return attr_head(name, kAttrFloat).single(2, v); }
inline Message attr_text(std::string_view name, std::string_view v) {
  return attr_head(name, kAttrString).text(4, v);
}
inline Message attr_ints(std::string_view name, const std::vector<int64_t>& v) {
  Message a = attr_head(name, kAttrInts);
  for (int64_t i : v) a.signed_number(8, i);
  return a;
}
inline Message attr_tensor(std::string_view name, const Message& t) {
  return attr_head(name, kAttrTensor).message(5, t);
}
inline Message attr_graph(std::string_view name, const Message& g) {
  return attr_head(name, kAttrGraph).message(6, g);
}
// In a function: the value comes from the call's attribute `from`.
inline Message attr_of_call(std::string_view name, int kind, std::string_view from) {
  return attr_head(name, kind).text(21, from);
}

struct NodeText {
  std::string op, name, domain;
};
inline Message node(const NodeText& what, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {}) {
  Message n;
  for (const auto& i : inputs) n.text(1, i);
  for (const auto& o : outputs) n.text(2, o);
  if (!what.name.empty()) n.text(3, what.name);
  n.text(4, what.op);
  for (const auto& a : attributes) n.message(5, a);
  if (!what.domain.empty()) n.text(7, what.domain);
  return n;
}

// "f32[N,3]": a number or a name a dimension, "?" for one without either. Type by number.
inline Message value(std::string_view name, int type, const std::vector<std::string>& dims,
                     bool ranked = true) {
  Message shape;
  for (const std::string& d : dims) {
    Message dim;
    if (d != "?" && (d[0] == '-' || (d[0] >= '0' && d[0] <= '9'))) {
      dim.signed_number(1, std::stoll(d));
    } else if (d != "?") {
      dim.text(2, d);
    }
    shape.message(1, dim);
  }
  Message tensor_type;
  tensor_type.number(1, static_cast<uint64_t>(type));
  if (ranked) tensor_type.message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor_type));
}

struct Graph {
  std::vector<Message> inputs, nodes, outputs, initializers, sparse;
  std::string name = "g";
  Message message() const {
    Message g;
    for (const auto& n : nodes) g.message(1, n);
    g.text(2, name);
    for (const auto& t : initializers) g.message(5, t);
    for (const auto& v : inputs) g.message(11, v);
    for (const auto& v : outputs) g.message(12, v);
    for (const auto& t : sparse) g.message(15, t);
    return g;
  }
};

using Imports = std::vector<std::pair<std::string, int64_t>>;
inline Message import_of(std::string_view domain, int64_t version) {
  return Message().text(1, domain).signed_number(2, version);
}
inline std::string model(const Graph& graph, const Imports& imports,
                         const std::vector<Message>& functions = {}) {
  Message m;
  m.number(1, 8).text(2, "test").message(7, graph.message());
  for (const auto& [domain, version] : imports) m.message(8, import_of(domain, version));
  for (const auto& f : functions) m.message(25, f);
  return m.bytes();
}
inline std::string model(const Graph& graph, int64_t opset = 21) {
  return model(graph, Imports{{"", opset}});
}

// Unranked outputs say the type alone; the graphs of tests leave shapes to inference.
inline Message output(std::string_view name, int type = kFloat) { return value(name, type, {}, false); }

}  // namespace onnx_test
