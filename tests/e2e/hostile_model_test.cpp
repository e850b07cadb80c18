// Sound files that lie: every number of a real model changed in turn, its weights against a page that nobody
// may touch. Each is refused with words, or runs without reading outside.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>
#include <type_traits>

#include "model/file.h"
#include "regie_test_paths.h"
#include "runtime/session.h"
#include "support/process.h"

namespace regie::test {
namespace {

// The bytes end where memory ends.
class Guarded {
 public:
  explicit Guarded(std::span<const std::byte> bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t room = (bytes.size() + page - 1) / page * page;
    size_ = room + kBeyond;
    void* at = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at, room, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(at);
    bytes_ = {base_ + room - bytes.size(), bytes.size()};
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    mprotect(at, room, PROT_READ);
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(base_, size_); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  static constexpr size_t kBeyond = 64 << 20;
  std::byte* base_ = nullptr;
  size_t size_ = 0;
  std::span<std::byte> bytes_;
};

// Calls f(what, number) for each number that decides what is read and where.
template <class F>
void each_number(Model& m, F&& f) {
  auto args = [&](const std::string& what, std::vector<Arg>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string arg = what + " " + std::to_string(i);
      f(arg + " kind", list[i].kind);
      f(arg + " index", list[i].index);
      f(arg + " offset", list[i].offset);
      f(arg + " type", list[i].type);
    }
  };
  auto all = [&](const std::string& what, auto& list) {
    for (auto& number : list) f(what, number);
  };
  for (ModelSymbol& s : m.symbols) {
    f("symbol lower", s.lower);
    f("symbol upper", s.upper);
    f("symbol input", s.input);
    f("symbol axis", s.axis);
    f("symbol reference", s.reference);
  }
  for (DimCode& e : m.expressions) all("expression", e.words);
  for (ModelType& t : m.types) {
    f("element type", t.elem);
    all("dimension", t.dims);
  }
  for (ModelSpace& s : m.spaces) {
    f("space device", s.device);
    f("device space", s.device_space);
    f("arena bytes", s.arena_bytes);
  }
  for (ModelBuffer& b : m.buffers) {
    const std::string what = "buffer '" + b.name + "' ";
    f(what + "kind", b.kind);
    f(what + "space", b.space);
    f(what + "alignment", b.alignment);
    f(what + "size", b.size);
    f(what + "offset", b.offset);
    all(what + "below", b.below);
  }
  all("placement order", m.placement_order);
  for (ModelWeight& w : m.weights) {
    f("weight offset", w.offset);
    f("weight size", w.size);
  }
  for (ModelKernel& k : m.kernels) {
    f("kernel device", k.device);
    f("kernel flags", k.flags);
  }
  for (ModelProgram& p : m.programs)
    for (ModelTask& t : p.tasks) {
      f(t.name + " kind", t.kind);
      f(t.name + " device", t.device);
      f(t.name + " stream", t.stream);
      f(t.name + " kernel", t.kernel);
      f(t.name + " scratch", t.scratch);
      args(t.name + " operand", t.operands);
      args(t.name + " result", t.results);
      args(t.name + " program argument", t.program_arguments);
      for (std::vector<Arg>& list : t.program_results) args(t.name + " program result", list);
      all(t.name + " program", t.programs);
      all(t.name + " kernel weight", t.kernel_weights);
      all(t.name + " wait", t.waits);
      all(t.name + " shape", t.shape_op);
      for (ModelDefine& d : t.defines) {
        f(t.name + " defined symbol", d.symbol);
        f(t.name + " defined result", d.result);
        f(t.name + " defined axis", d.axis);
      }
    }
  for (auto* ports : {&m.inputs, &m.outputs})
    for (ModelPort& p : *ports) {
      f("port type", p.type);
      if (p.shape != REGIE_NONE) f("output of dimensions", p.shape);
      if (p.default_weight == REGIE_NONE) continue;
      f("weight of a default", p.default_weight);
      f("type of a default", p.default_type);
    }
  args("output source", m.output_sources);
}

// Values that a number is replaced by, beside its neighbours: the ends of its type, and the small weights
// that prepare() adds.
constexpr size_t kValues = 8;
template <class T>
T changed(T old, size_t which, size_t weights) {
  using Number = std::conditional_t<std::is_enum_v<T>, uint8_t, T>;
  const auto n = static_cast<uint64_t>(old);
  const Number values[kValues] = {0,
                                  static_cast<Number>(n + 1),
                                  static_cast<Number>(n - 1),
                                  static_cast<Number>(n * 2),
                                  std::numeric_limits<Number>::max(),
                                  static_cast<Number>(weights - 1),
                                  static_cast<Number>(weights - 2),
                                  static_cast<Number>(uint64_t{1} << (sizeof(Number) * 4 + 3))};
  return static_cast<T>(values[which]);
}

struct Progress {
  size_t at, accepted, refused;
};

// Runs a model in a few ways; whether any went well.
using Runs = bool (*)(Context&, const Model&);

bool run_digits(Context& context, const Model& m) {
  const std::vector<float> image(5 * 64, 0.5f);
  bool ran = false;
  for (const int64_t batch : {1, 5}) {
    const int64_t dims[] = {batch, 1, 8, 8};
    regie_tensor in{
        REGIE_F32, 0, 4, dims, nullptr, const_cast<float*>(image.data()), static_cast<uint64_t>(batch) * 256};
    std::vector<regie_tensor> out(m.outputs.size());
    ran |= context.run({&in, 1}, out).ok();
  }
  return ran;
}

// Rows that are picked by data: twice as many, none, and all.
bool run_picking(Context& context, const Model& m) {
  std::vector<float> c(16), x(64, 0.5f);
  bool ran = false;
  for (const size_t count : {8, 0, 16}) {
    for (size_t i = 0; i < 16; ++i) c[i] = i < count ? 1.0f : 0.0f;
    const int64_t c_dims[] = {16}, x_dims[] = {16, 4};
    const regie_tensor in[] = {{REGIE_F32, 0, 1, c_dims, nullptr, c.data(), 64},
                               {REGIE_F32, 0, 2, x_dims, nullptr, x.data(), 256}};
    std::vector<regie_tensor> out(m.outputs.size());
    ran |= context.run(in, out).ok();
  }
  return ran;
}

// Changes from `progress->at` on; ends the process.
[[noreturn]] void try_changes(const Model& good, const Guarded& weights, size_t count, Runs runs,
                              Progress* progress) {
  alarm(200);
  auto plugins = PluginHost::create({REGIE_TEST_PLUGIN_DIR});
  if (!plugins.ok()) _exit(3);
  for (; progress->at < count * kValues; ++progress->at) {
    auto m = std::make_shared<Model>(good);
    m->weight_bytes = weights.bytes();
    size_t number = 0;
    each_number(*m, [&](const std::string&, auto& n) {
      if (number++ == progress->at / kValues) n = changed(n, progress->at % kValues, good.weights.size());
    });
    auto session = Session::create(m, *plugins);
    auto context = session.ok() ? (*session)->acquire() : Result<std::shared_ptr<Context>>(session.status());
    const bool ran = context.ok() && runs(**context, *m);
    ++(ran ? progress->accepted : progress->refused);
  }
  _exit(0);
}

// An input that is left out, or given; and an output whose rank the run tells, read as far as its dimensions
// say.
bool run_ports(Context& context, const Model& m) {
  std::vector<float> x(8, 0.5f);
  const int64_t x_dims[] = {2, 4}, w_dims[] = {4}, told[] = {2, 2, 2};
  bool ran = false;
  for (const int64_t rank : {3, 1}) {
    const int64_t d_dims[] = {rank}, whole[] = {8};
    regie_tensor in[3] = {{REGIE_F32, 0, 2, x_dims, nullptr, x.data(), 32},
                          {REGIE_I64, 0, 1, d_dims, nullptr, const_cast<int64_t*>(rank == 1 ? whole : told),
                           static_cast<uint64_t>(rank) * 8},
                          {}};
    if (rank == 1) in[2] = {REGIE_F32, 0, 1, w_dims, nullptr, x.data(), 16};
    std::vector<regie_tensor> out(m.seen_outputs());
    if (!context.run(in, out).ok()) continue;
    ran = true;
    for (const regie_tensor& t : out) {
      const auto bytes =
          elem_bytes(t.elem, static_cast<uint64_t>(element_count({t.dims, static_cast<size_t>(t.rank)})));
      volatile uint8_t last = 0;
      for (uint64_t i = 0; i < bytes; ++i) last = static_cast<const uint8_t*>(t.data)[i];
      static_cast<void>(last);
    }
  }
  return ran;
}

// A few iterations whatever happens to one of the numbers: two things end each loop.
bool run_loops(Context& context, const Model& m) {
  std::vector<float> x(4, 0.5f);
  int64_t count = 3;
  const int64_t dims[] = {1, 4};
  const regie_tensor in[] = {{REGIE_F32, 0, 2, dims, nullptr, x.data(), 16},
                             {REGIE_I64, 0, 0, nullptr, nullptr, &count, 8}};
  std::vector<regie_tensor> out(m.outputs.size());
  return context.run(in, out).ok();
}

void change_every_number(const std::string& source, Runs runs) {
  Scratch scratch;
  const std::string path = scratch.path("model.rgm");
  ASSERT_EQ(run_regie("compile " + shell_word(source) + " -o " + shell_word(path)).exit_code, 0);
  const std::shared_ptr<const Model> loaded = load_model(path).value();
  Model good = *loaded;
  std::vector<std::byte> bytes(loaded->weight_bytes.begin(), loaded->weight_bytes.end());
  for (const char* layout : {"portable", "opaque:e:1"}) {
    bytes.resize((bytes.size() + 63) / 64 * 64 + 64);
    good.weights.push_back({bytes.size() - 64, 64, layout, layout});
  }
  const Guarded weights(bytes);
  std::vector<std::string> names;
  each_number(good, [&](const std::string& what, auto&) { names.push_back(what); });
  ASSERT_GT(names.size(), 100u);

  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* progress = new (shared) Progress{};
  for (int crashes = 0; crashes < 20 && progress->at < names.size() * kValues;) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) try_changes(good, weights, names.size(), runs, progress);
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    if (WIFEXITED(how)) {
      ASSERT_EQ(WEXITSTATUS(how), 0);
      continue;
    }
    ++crashes;
    ADD_FAILURE() << names[progress->at / kValues] << " with value " << progress->at % kValues << ": signal "
                  << WTERMSIG(how);
    ++progress->at;
  }
  EXPECT_GT(progress->accepted, 50u) << "nearly nothing ran: the test does not reach what it is for";
  EXPECT_GT(progress->refused, names.size());
  munmap(shared, sizeof(Progress));
}

TEST(HostileModel, AnyChangedNumberIsRefusedOrHarmless) {
  change_every_number(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx", run_digits);
}

TEST(HostileModel, AnyChangedNumberOfLoopsIsRefusedOrHarmless) {
  Scratch scratch;
  const std::string source = scratch.path("loops.rg");
  std::ofstream(source) << R"(
graph @loops(%x: f32[1,4], %n: i64[]) -> (%last, %z, %all, %rows) where P in 0.. data {
  %five: const i64[] = 5
  %four: const i64[] = 4
  %w: const f32[4,4] = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
  %last, %z, %all = Loop(%four, _, %x, %x) {carried = 2} region @body(%i: i64[], %g: bool[], %a: f32[1,4], %b: f32[1,4]) -> (%g, %b, %m, %t) {
    %m = MatMul(%a, %w)
    %t = Add(%m, %b)
  }
  %rows = Loop(%n, _, %x, %z) {carried = 1} region @grow(%j: i64[], %h: bool[], %past: f32[P,4], %c: f32[1,4]) -> (%more, %next) {
    %next = Concat(%past, %c) {axis = 0}
    %more = Less(%j, %five)
  }
}
)";
  change_every_number(source, run_loops);
}

TEST(HostileModel, AnyChangedNumberOfPortsIsRefusedOrHarmless) {
  Scratch scratch;
  const std::string source = scratch.path("ports.rg");
  std::ofstream(source) << R"(
graph @ports(%x: f32[N,4], %d: i64[R], %w: f32[4] = f32[4] [1.0, 2.0, 3.0, 4.0]) -> (%list as "y" shaped %d, %z, %v, %w) {
  %flat: const i64[1] = [-1]
  %k: const f32[4,4] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]
  %m = MatMul(%x, %k)
  %r = Relu(%m)
  %list = Reshape(%r, %flat)
  %z = Add(%r, %w)
  %t = Transpose(%z) {perm = [1, 0]}
  %v = Softmax(%t)
}
)";
  change_every_number(source, run_ports);
}

TEST(HostileModel, AnyChangedNumberOfLateShapesIsRefusedOrHarmless) {
  Scratch scratch;
  const std::string source = scratch.path("pick.rg");
  std::ofstream(source) << R"(
graph @pick(%c: f32[16], %x: f32[16,4]) -> (%y, %sums, %rows) {
  %flat: const i64[1] = [-1]
  %last: const i64[1] = [1]
  %w: const f32[4,2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
  %where = NonZero(%c)
  %rows = Reshape(%where, %flat)
  %picked = Gather(%x, %rows) {axis = 0}
  %m = MatMul(%picked, %w)
  %y = Relu(%m)
  %sums = ReduceSum(%y, %last) {keepdims = 0}
}
)";
  change_every_number(source, run_picking);
}

}  // namespace
}  // namespace regie::test
