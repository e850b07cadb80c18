// Any bytes as .rg text: an error with a place, or a sound graph that prints, and comes back from what it printed.
#include <cstdio>
#include <cstdlib>

#include "ir/verify.h"
#include "text/text.h"

namespace {
void need(bool ok, const char* what, const std::string& detail) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regie;
  auto graphs = parse_all(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.rg");
  if (!graphs.ok()) {
    need(graphs.status().where().starts_with("fuzz.rg:"), "an error without a place", graphs.status().to_string());
    return 0;
  }
  for (const auto& g : *graphs) {
    Status s = verify(*g);
    need(s.ok(), "parsed, but unsound", s.to_string());
    PrintOptions all;
    all.inline_elements = UINT64_MAX;
    std::string text = print(*g, all);
    auto back = parse(text, "again.rg");
    need(back.ok(), "does not read back", back.ok() ? "" : back.status().to_string() + "\n" + text);
    s = same_graph(*g, **back);
    need(s.ok(), "reads back as another graph", s.to_string() + "\n" + text);
    need(print(**back, all) == text, "prints another text", text);
  }
  return 0;
}
