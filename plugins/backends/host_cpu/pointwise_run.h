// An element-wise program made ready for concrete shapes. A launch walks over the result in tiles: what a
// tile needs is brought into registers (pieces of the stack that stay in the first-level cache) or read where
// it lies, the loops run over it, and only results go back to memory.
//
// Broadcasting: dimensions that all tensors walk through alike are merged. If one is left, tiles are cut from
// it; else a tile is a part of a row, or several short rows. A launch allocates nothing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "executable.h"
#include "pointwise_plan.h"
#include "regie/reference_kernel.hpp"

namespace host_cpu {

class PointwiseRun {
 public:
  // Throws UNSUPPORTED or INVALID_INPUT with the reason. `program` must live as long.
  PointwiseRun(const regie::sdk::WordCatcher& catcher, const PointwiseProgram& program,
               const PrepareRequest& request, uint32_t threads);
  uint64_t scratch_bytes() const { return 0; }
  regie_status run(const regie_launch& launch, std::string* words);

 private:
  static constexpr size_t kStackBytes = 64 << 10, kMostValues = 320, kMostFeeds = 64, kMostRank = 16;
  static constexpr int64_t kChunk = 64;  // elements a call of a reference kernel

  enum class Place : uint8_t { kNowhere, kDirect, kRow, kSlot, kResult };
  struct Value {
    Place place = Place::kNowhere;
    uint32_t slot = REGIE_NONE;
    regie_elem elem = REGIE_ELEM_UNKNOWN;
    bool uniform = false;  // the same for all elements
  };
  // What fills a register before the loops run, or, with kRow, says where in memory a tile of it lies.
  struct Feed {
    uint32_t value;                // an operand
    bool full = false;             // of the result's shape, but in need of conversion
    bool periodic = false;         // the same for each row
    bool direct = false;           // read where it lies
    std::vector<int64_t> strides;  // by merged dimension, in elements
  };
  struct Output {
    uint32_t result, value;
    bool stored = false;              // from a register, behind the loops
    std::vector<uint32_t> conflicts;  // operands that are still read when it is being written
  };
  struct Call {  // of a reference kernel
    regie::sdk::ReferenceKernel kernel;
    std::vector<uint32_t> operands;     // values, or REGIE_NONE
    std::vector<regie_tensor> tensors;  // operands of a chunk
    regie_tensor result;                // likewise
    std::vector<Bytes> scratch;         // by thread
  };
  struct Thread;

  void place_operands();
  void rename_axes(const PrepareRequest& request);
  void merge_dimensions(const PrepareRequest& request);
  void place_results(const PrepareRequest& request);
  void give_slots();
  void choose_tiles(uint32_t threads);
  void prepare_calls();
  // The values that an instruction reads, where they lie; with repetitions.
  template <class F>
  void each_read(const PointwiseInstruction& i, F&& f) const;
  bool reads_later(uint32_t operand_value, size_t instruction) const;

  void start(Thread& t) const;
  void fill(const Feed& f, char* to, int64_t offset, int64_t count) const;
  void tiles(uint32_t thread, int64_t from, int64_t to);
  void one_tile(Thread& t, int64_t start, int64_t count);
  void call_reference(Thread& t, const PointwiseInstruction& i, int64_t count);
  void failed(regie_status code, std::string words);

  const regie::sdk::WordCatcher& catcher_;
  const PointwiseProgram& program_;
  // The request's tensors as row-major ones: in a format their axes have other sizes and another order.
  std::vector<regie_tensor> physical_operands_, physical_results_;
  std::vector<std::vector<int64_t>> physical_dims_;
  PointwisePlan plan_;
  std::vector<Value> values_;
  std::vector<Feed> feeds_;
  std::vector<Output> outputs_;
  std::vector<std::unique_ptr<Call>> calls_;  // by step; null: by loops
  std::vector<int64_t> dims_;                 // merged; the last one is the row
  int64_t elements_ = 0, row_ = 1, rows_ = 1;
  int64_t tile_ = 0, rows_a_tile_ = 0, parts_a_row_ = 1, tile_count_ = 0;
  bool flat_ = true;
  uint32_t slots_ = 0, slot_bytes_ = 0, widest_ = 1, threads_ = 1;
  // Of the launch.
  const regie_launch* launch_ = nullptr;
  std::vector<uint8_t> in_slot_;  // by output
  std::atomic<regie_status> code_{REGIE_OK};
  std::string words_;  // of the first failure
};

}  // namespace host_cpu
