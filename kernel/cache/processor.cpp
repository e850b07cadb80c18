#include "cache/processor.h"

#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/hash.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace regie {

namespace {

#if defined(__x86_64__) || defined(__i386__)

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers ask(uint32_t leaf, uint32_t sub = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

Processor read() {
  Hasher h;
  const Registers vendor = ask(0), features = ask(1), extended = ask(0x80000001);
  h.number(vendor.b).number(vendor.c).number(vendor.d);
  h.number(features.a).number(features.c).number(features.d);  // b has the number of the core
  h.number(extended.c).number(extended.d);
  for (uint32_t sub : {0u, 1u}) {
    const Registers r = ask(7, sub);
    h.number(r.a).number(r.b).number(r.c).number(r.d);
  }
  if (features.c & (1u << 27)) {  // which registers the system keeps for a process
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    h.number(low).number(high);
  }
  std::string name;
  for (uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const Registers r = ask(leaf);
    char text[16];
    std::memcpy(text, &r, sizeof text);
    name.append(text, strnlen(text, sizeof text));
  }
  while (!name.empty() && name.back() == ' ') name.pop_back();
  name.erase(0, name.find_first_not_of(' ') == std::string::npos ? name.size() : name.find_first_not_of(' '));
  return {name.empty() ? "x86" : name, h.hex()};
}

#else

Processor read() {
  // The first processor's lines, without those that change from one moment to the next.
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown";
  Hasher h;
  while (std::getline(file, line) && !line.empty()) {
    if (line.find("MHz") != std::string::npos || line.find("BogoMIPS") != std::string::npos) continue;
    if (line.starts_with("model name") || line.starts_with("CPU part"))
      name = line.substr(line.find(':') + 1);
    h.text(line);
  }
  return {name, h.hex()};
}

#endif

}  // namespace

const Processor& processor() {
  static const auto* p = new Processor(read());
  return *p;
}

}  // namespace regie
