// The structural operators: If, whose regions the host runs, and regie.Copy, which moves a tensor to another
// memory space; regie.Reformat, which brings its bytes into another order: where all is row-major, as for a
// reference kernel, that is a copy.
#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

std::string describe(const Infer& infer, const regie_type& type) {
  return std::string(elem_name(type.elem)) + (type.rank < 0 ? "[?]" : infer.print(sdk::dims_of(type)));
}

// Operands: condition and captures; both regions take the captures as their arguments.
void infer_if(const Infer& infer) {
  auto regions = infer.regions();
  if (regions.size() != 2) infer.bad("needs two regions, for true and for false");
  if (infer.elem(0) != REGIE_BOOL) infer.bad("the condition must be bool");
  for (regie_dim d : infer.shape(0))
    if (!infer.agree(d, 1))
      infer.bad("the condition must have one element, not the shape " + infer.print(infer.shape(0)));
  const regie_region_info &yes = regions[0], &no = regions[1];
  for (const regie_region_info& region : regions) {
    if (region.arg_count + 1 != infer.operands())
      infer.bad("a region takes " + std::to_string(region.arg_count) + " arguments, but there are " +
                std::to_string(infer.operands() - 1) + " captures");
    if (region.result_count != infer.results())
      infer.bad("a region gives " + std::to_string(region.result_count) + " results, not " +
                std::to_string(infer.results()));
  }
  for (uint32_t i = 0; i < infer.results(); ++i) {
    const regie_type &a = yes.results[i], &b = no.results[i];
    std::string both = "result " + std::to_string(i) + " is " + describe(infer, a) + " if true, " +
                       describe(infer, b) + " if false";
    if (a.container != REGIE_TENSOR || b.container != REGIE_TENSOR)
      infer.unsupported(both + "; only tensors are covered");
    if (a.elem != b.elem) infer.bad(both + "; both need one element type");
    if (a.rank < 0 || b.rank < 0 || a.rank != b.rank)
      infer.unsupported(both + "; branches of different ranks are not covered");
    // Where they differ, the run tells.
    Shape y(a.dims, a.dims + a.rank);
    for (int32_t d = 0; d < a.rank; ++d)
      if (b.dims[d] != a.dims[d]) y[static_cast<size_t>(d)] = REGIE_DIM_UNKNOWN;
    infer.result(i, a.elem, y);
  }
}

void infer_copy(const Infer& infer) {
  infer.result(0, infer.elem(0), infer.shape(0));
  if (auto content = infer.content(0)) infer.content(0, *content);
}

KernelPtr prepare_copy(Prepare& p) {
  p.expect_result(0, p.shape(0));
  uint32_t size = p.moved_bytes(p.in(0));
  return make_kernel([bytes = static_cast<uint64_t>(sdk::count_of(p.in(0))) * size](const Call& call) {
    copy_bytes(call.out<void>(0), call.in<void>(0), bytes);
  });
}

void infer_require(const Infer& infer) {
  for (regie_dim d : infer.shape(1))
    if (!infer.agree(d, 1)) infer.bad("the condition must have one element");
  infer_copy(infer);
}

KernelPtr prepare_require(Prepare& p) {
  if (p.in(1).elem != REGIE_BOOL || sdk::count_of(p.in(1)) != 1) p.bad("the condition must be one bool");
  return make_kernel([copy = prepare_copy(p), expected = p.attrs.integer("expected", 1) != 0,
                      message = std::string(p.attrs.text("message", ""))](const Call& call) {
    if ((*call.in<uint8_t>(1) != 0) != expected) throw sdk::Failure(REGIE_INVALID_INPUT, message);
    copy->run(call);
  });
}

constexpr Op table[] = {
    {"If", 0, infer_if, nullptr},
    {"regie.Require", 0, infer_require, prepare_require},
    {"regie.Copy", 0, infer_copy, prepare_copy},
    {"regie.Reformat", 0, infer_copy, prepare_copy},
};

}  // namespace

std::span<const Op> structural_ops() { return table; }

}  // namespace regie::ops
