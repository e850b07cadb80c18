// The operators that the frontend knows: their versions, what they take in each, and how each becomes
// canonical (ONNX's operators as of operator set 21). A table, in operators.cpp; the functions are in
// translate.cpp, for pictures in translate_pictures.cpp, for operator sets 1 to 6 in translate_old.cpp, for
// withdrawn ones in translate_withdrawn.cpp, and for the quantised ones of com.microsoft, with a table of
// their own, in translate_microsoft.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attributes.h"
#include "context.h"
#include "functions.h"
#include "sequences.h"

namespace regie::onnx {

constexpr int64_t kOldestOpset = 1;
constexpr int64_t kNewestOpset = 28;

class Translation;
using Translate = void (*)(Translation&);

// One shape of an operator's interface, valid from version `since` up to the next form.
struct Form {
  int since;
  const char* attributes;  // as Attributes::read wants them
  int least_operands, most_operands;
  Translate translate;
};

struct Operator {
  const char* name;
  const char* versions;  // every version that ONNX has defined, ascending: "1 6 13"
  Form forms[5];         // ascending; unused ones have since 0
};

constexpr int kAnyNumber = INT32_MAX;

const Operator* find_operator(std::string_view name);
// Of "com.microsoft.QLinearAdd" and its like (translate_microsoft.cpp).
const Operator* find_operator_of_microsoft(std::string_view name);
// The form at an operator set; NULL if the operator came later or if its form then is not supported.
const Form* form_at(const Operator& op, int64_t opset);
// The version that made the operator, e.g. 14.
int first_version(const Operator& op);

// Outputs of a node without trailing ones that nobody asks for.
size_t outputs_of(const NodeRef& ref);

// One node on its way. Operands are values of the graph under construction, REGIE_NONE where absent.
class Translation {
 public:
  virtual ~Translation() = default;
  Translation(Context& c, const NodeRef& r, int64_t v) : context(c), ref(r), opset(v) {}

  Context& context;
  const NodeRef& ref;
  const int64_t opset;
  std::vector<uint32_t> operands;
  Attributes attributes;

  struct Type {
    regie_elem elem;
    int32_t rank;  // -1: unknown
    std::vector<regie_dim> dims;
  };
  virtual Type type(uint32_t value) const = 0;
  // The bytes of a constant or weight, NULL otherwise.
  virtual const regie_tensor* data(uint32_t value) const = 0;
  // A constant named after the node: "<node>_<suffix>".
  virtual uint32_t constant(const TensorData& tensor, std::string_view suffix) = 0;
  // A helper node with one result.
  virtual uint32_t make(std::string_view op, const std::vector<uint32_t>& operands,
                        const std::vector<Attribute>& attributes = {}) = 0;
  virtual std::vector<uint32_t> make_several(std::string_view op, const std::vector<uint32_t>& operands,
                                             const std::vector<Attribute>& attributes, size_t results) = 0;
  // A sequence by its id, which may stand where values do; and a new one.
  virtual Sequence& sequence(uint32_t id) = 0;
  virtual uint32_t add_sequence(Sequence s) = 0;
  // The node that gives the node's outputs. Call it once, last.
  virtual void finish(std::string_view op, const std::vector<uint32_t>& operands,
                      const std::vector<Attribute>& attributes) = 0;
  // Instead of `finish`, where several nodes give the outputs: a value for each, REGIE_NONE or none at the
  // end for those that nobody reads.
  virtual void finish_with(const std::vector<uint32_t>& values) = 0;
  // Instead of `finish`: a Constant becomes a constant, an If gets its branches as regions, Loop and Scan
  // their body.
  virtual void finish_constant() = 0;
  virtual void finish_if() = 0;
  virtual void finish_loop() = 0;
  virtual void finish_scan() = 0;
  virtual void finish_scan_of_8() = 0;
  virtual void finish_sequence_map() = 0;

  // Does anything in the model read this output?
  virtual bool output_read(int index) const = 0;
  size_t output_count() const { return outputs_of(ref); }
  bool output_wanted(int index) const {
    return index < ref.node->output_size() && !ref.node->output(index).empty();
  }
  uint32_t operand(size_t i) const { return i < operands.size() ? operands[i] : REGIE_NONE; }
};

// What several translations need.
std::vector<int64_t> required_integers(Translation&, std::string_view attribute);
// A scalar constant of the type of `like`.
uint32_t scalar_like(Translation&, uint32_t like, double value, std::string_view suffix);
// The first element of a constant as whole_at has it; nothing if the value is no constant, or empty.
std::optional<int64_t> known_number(const Translation&, uint32_t value);
// Axis -rank..rank-1 as 0..rank-1; INVALID_MODEL if it is outside.
int64_t normal_axis(Translation&, int64_t axis, int64_t rank, std::string_view what = "axis");

void same(Translation&);
void same_but_precision(Translation&);
void product_of_integers(Translation&);
void softmax_of_2d(Translation&);
void axes_to_operand(Translation&);
void split_to_operand(Translation&);
void split_without_sizes(Translation&);
void pad_to_operands(Translation&);
void slice_to_operands(Translation&);
void clip_to_operands(Translation&);
void dropout_of_inference(Translation&);
void dropout(Translation&);
void batch_normalization(Translation&);
void cast(Translation&);
void sum(Translation&);
void cast_like(Translation&);
void mean(Translation&);
void resize_of_10(Translation&);
void resize(Translation&);
void upsample(Translation&);
void group_normalization_of_18(Translation&);
void top_k_of_1(Translation&);
void scatter(Translation&);
void dft_of_17(Translation&);
void grid_sample_of_16(Translation&);
void roi_align_of_10(Translation&);
void swiglu(Translation&);
void causal_conv_with_state(Translation&);
void bernoulli(Translation&);
void multinomial(Translation&);
void random_of_shape(Translation&);
// Of operator sets 1 to 6 (translate_old.cpp).
void broadcast_of_1(Translation&);
void prelu_of_1(Translation&);
void selu_of_1(Translation&);
void cast_of_1(Translation&);
void concat_of_1(Translation&);
void dropout_of_1(Translation&);
void recurrent_of_1(Translation&);
void gemm_of_1(Translation&);
void lp_pool_of_1(Translation&);
void reshape_of_1(Translation&);
void split_of_1(Translation&);
void tile_of_1(Translation&);
void upsample_of_1(Translation&);
// What ONNX had as experimental and took back; files have it still (translate_withdrawn.cpp).
void affine(Translation&);
void crop(Translation&);
void image_scaler(Translation&);
void parametric_softplus(Translation&);
void scaled_tanh(Translation&);
void mean_variance_of_1(Translation&);
void constant(Translation&);
void branches(Translation&);
void loop(Translation&);
void scan_of_8(Translation&);
void scan(Translation&);

}  // namespace regie::onnx
