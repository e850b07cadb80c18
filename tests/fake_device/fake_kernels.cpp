#include "fake_kernels.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace fake {

using regie::sdk::Failure;

Program parse(std::string_view blob) {
  Program p;
  const size_t colon = blob.find(':');
  p.word = blob.substr(0, colon);
  if (colon != std::string_view::npos) p.number = std::stod(std::string(blob.substr(colon + 1)));
  for (const char* known : {"add", "scale", "sum", "less", "scratch", "fail", "throw", "packed", "refuse"})
    if (p.word == known) return p;
  throw Failure(REGIE_CORRUPT, "the fake device knows no kernel '" + p.word + "'");
}

uint64_t scratch_bytes(const Program& p) { return p.word == "scratch" ? static_cast<uint64_t>(p.number) : 0; }

namespace {

// Bytes may lie anywhere, as the caller's inputs do.
float at(const regie_tensor& t, int64_t i) {
  float v;
  std::memcpy(&v, static_cast<const std::byte*>(t.data) + 4 * i, 4);
  return v;
}
void put(const regie_tensor& t, int64_t i, double v) {
  const float f = static_cast<float>(v);
  std::memcpy(static_cast<std::byte*>(t.data) + 4 * i, &f, 4);
}

}  // namespace

void run(const Program& p, const std::vector<regie_tensor>& in, const std::vector<regie_tensor>& out,
         void* scratch, const std::vector<const void*>& prepared) {
  const int64_t count = out.empty() ? 0 : regie::sdk::count_of(out[0]);
  if (p.word == "fail") throw Failure(REGIE_DEVICE, "the fake kernel fails on purpose");
  if (p.word == "add") {
    // Operand 1 of one element is broadcast.
    const bool one = regie::sdk::count_of(in[1]) == 1;
    for (int64_t i = 0; i < count; ++i) put(out[0], i, at(in[0], i) + at(in[1], one ? 0 : i));
  } else if (p.word == "scale") {
    for (int64_t i = 0; i < count; ++i) put(out[0], i, p.number * at(in[0], i));
  } else if (p.word == "sum") {
    double sum = 0;
    for (int64_t i = 0; i < regie::sdk::count_of(in[0]); ++i) sum += at(in[0], i);
    put(out[0], 0, sum);
  } else if (p.word == "less") {
    *static_cast<uint8_t*>(out[0].data) = at(in[0], 0) < p.number;
  } else if (p.word == "packed") {
    // Operand 1 is in a layout of this kernel's own: a float, eight bytes into its bytes. It was shown at
    // prepare.
    if (in[1].bytes < 12 || prepared.size() < 2 || prepared[1] != in[1].data)
      throw Failure(REGIE_DEVICE, "the packed weight is not the one that was prepared");
    float k;
    std::memcpy(&k, static_cast<const std::byte*>(in[1].data) + 8, 4);
    for (int64_t i = 0; i < count; ++i) put(out[0], i, k * at(in[0], i));
  } else if (p.word == "scratch") {
    // Copies by way of the scratch, slowly: another task that uses the same bytes meanwhile is noticed.
    const size_t bytes = static_cast<size_t>(p.number);
    auto* s = static_cast<std::byte*>(scratch);
    const auto mark = static_cast<std::byte>(0x10 + static_cast<int>(at(in[0], 0)) % 200);
    std::memset(s, static_cast<int>(mark), bytes);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (size_t i = 0; i < bytes; ++i)
      if (s[i] != mark) throw Failure(REGIE_DEVICE, "somebody else wrote into the scratch");
    for (int64_t i = 0; i < count; ++i) put(out[0], i, at(in[0], i));
  }
}

}  // namespace fake
