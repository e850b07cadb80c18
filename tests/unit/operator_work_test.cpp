// How much arithmetic an operator is, against what its definition multiplies.
#include "regie/operator_work.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace {

using Dims = std::vector<int64_t>;

struct Tensors {
  std::vector<Dims> dims;
  std::vector<regie_tensor> list;
  Tensors(std::vector<Dims> shapes, std::vector<uint32_t> elems) : dims(std::move(shapes)) {
    for (size_t i = 0; i < dims.size(); ++i) {
      regie_tensor t{};
      t.elem = static_cast<regie_elem>(elems[i % elems.size()]);
      t.rank = static_cast<int32_t>(dims[i].size());
      t.dims = dims[i].data();
      list.push_back(t);
    }
  }
};

double flops(const char* op, const Tensors& in, const Tensors& out) {
  return regie::sdk::operator_work(op, nullptr, 0, in.list.data(), static_cast<uint32_t>(in.list.size()),
                                   out.list.data(), static_cast<uint32_t>(out.list.size()))
      .flops;
}

TEST(OperatorWork, ConvolutionsMultiplyByTheirWeightsWhereverTheseStand) {
  const Dims x{2, 8, 10, 12}, w{16, 4, 3, 5}, y{2, 16, 8, 8}, one{};  // two groups
  // Each element of the result: channels of its group times window, a product and a sum.
  const double expected = 2.0 * (2 * 16 * 8 * 8) * (4 * 3 * 5);
  const Tensors result({y}, {REGIE_F32}), bytes({y}, {REGIE_U8});
  EXPECT_EQ(flops("Conv", {{x, w}, {REGIE_F32}}, result), expected);
  EXPECT_EQ(flops("ConvInteger", {{x, w}, {REGIE_U8}}, bytes), expected);
  EXPECT_EQ(flops("regie.QConv", {{x, w}, {REGIE_U8}}, bytes), expected);
  // x, its scale and zero point, w, ...
  EXPECT_EQ(flops("QLinearConv", {{x, one, one, w, one, one, one, one}, {REGIE_U8}}, bytes), expected);
}

TEST(OperatorWork, ProductsCountTheirSharedAxis) {
  const Dims a{3, 7, 11}, b{3, 11, 5}, y{3, 7, 5}, one{};
  const double expected = 2.0 * (3 * 7 * 5) * 11;
  const Tensors result({y}, {REGIE_F32});
  EXPECT_EQ(flops("MatMul", {{a, b}, {REGIE_F32}}, result), expected);
  EXPECT_EQ(flops("QLinearMatMul", {{a, one, one, b, one, one, one, one}, {REGIE_U8}}, result), expected);
}

TEST(OperatorWork, RecurrentLayersUseAllWeightsAtEachStep) {
  const int64_t steps = 9, batch = 2, inputs = 6, hidden = 4, directions = 2;
  const std::pair<const char*, int64_t> layers[] = {{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
  for (const auto& [op, gates] : layers) {
    const Tensors in(
        {{steps, batch, inputs}, {directions, gates * hidden, inputs}, {directions, gates * hidden, hidden}},
        {REGIE_F32});
    const Tensors out({{steps, directions, batch, hidden}}, {REGIE_F32});
    const double expected =
        2.0 * static_cast<double>(directions * steps * batch * gates * hidden * (inputs + hidden));
    EXPECT_EQ(flops(op, in, out), expected) << op;
  }
}

}  // namespace
