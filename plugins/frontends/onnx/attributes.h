// A node's attributes, read against the list that its operator has at the model's operator set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "context.h"
#include "reader.h"
#include "tensors.h"

namespace regie::onnx {

struct Attribute {
  std::string name;
  uint32_t kind = 0;  // REGIE_ATTR_*
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  TensorData tensor;

  static Attribute integer(std::string name, int64_t value);
  static Attribute number(std::string name, double value);
  static Attribute text(std::string name, std::string value);
  static Attribute list(std::string name, std::vector<int64_t> values);
};

class Attributes {
 public:
  // `known` lists the operator's attributes as "axis:i pads:I ..."; letters: i int, f float, s string, I F S
  // lists of them, t tensor. Graphs (g) and sparse tensors (p) are skipped: the builder reads them. NULL: any
  // attribute (operators of other plug-ins).
  static Attributes read(const Context& context, const wire::Node& node, const char* known, int64_t opset);

  // Takes one out; nothing if it is absent.
  std::optional<Attribute> take(std::string_view name);
  int64_t take_integer(std::string_view name, int64_t fallback);
  double take_number(std::string_view name, double fallback);
  std::string take_text(std::string_view name, std::string fallback);
  std::optional<std::vector<int64_t>> take_integers(std::string_view name);
  void add(Attribute attribute) { list_.push_back(std::move(attribute)); }
  const std::vector<Attribute>& list() const { return list_; }

 private:
  std::vector<Attribute> list_;
};

// Attributes as the host wants them; valid while the list lives and does not change.
class AttributeViews {
 public:
  explicit AttributeViews(const std::vector<Attribute>& list);
  const regie_attr* data() const { return views_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(views_.size()); }

 private:
  std::vector<regie_attr> views_;
  std::vector<regie_tensor> tensors_;
  std::vector<std::vector<regie_str>> strings_;
};

// The kind that an attribute says or, where it says none (old files), shows.
wire::Attribute::Kind kind_of(const wire::Attribute& attribute);
// The shortest decimal number that is `value` in single precision: 0.01f as 0.01, as schemas and rules write
// it.
double shortest(float value);

}  // namespace regie::onnx
