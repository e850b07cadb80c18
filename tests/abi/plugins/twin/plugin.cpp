// A pass over its own copy of the library in runtime.h. `create` registers a name, once; `run` tells what
// this copy has seen.
#include <string>

#include "regie/c/pass.h"
#include "regie/plugin.hpp"
#include "regie_digests.h"
#include "runtime.h"

struct regie_pass {};

namespace {

namespace sdk = regie::sdk;

regie_status create(uint32_t, const regie_host* host, const regie_config*, regie_pass** pass) {
  return sdk::guard(host, [&] {
    twin::register_name("abi.Message");
    ++twin::inline_counter;
    ++twin::Shared<int>::counter;
    ++twin::Shared<int>::thread_counter();
    *pass = new regie_pass;
  });
}

regie_status run(regie_pass*, const regie_pass_context* context) {
  return sdk::fail(context->host, REGIE_UNSUPPORTED,
                   std::string(twin::version()) + " " + std::to_string(twin::registered()) + " " +
                       std::to_string(twin::inline_counter) + " " +
                       std::to_string(twin::Shared<int>::counter) + " " +
                       std::to_string(twin::Shared<int>::thread_counter()));
}

void destroy(regie_pass* pass) { delete pass; }

const regie_pass_info kPasses[] = {
    {sdk::lit(PASS_NAME), sdk::lit("Counts."), 0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr}};
const regie_pass_table kTable = {
    sdk::head(sizeof(regie_pass_table), REGIE_DIGEST_PASS), 1, 0, kPasses, create, run, destroy};

const void* find(const char* id) { return std::string_view(id) == REGIE_PASS_ID ? &kTable : nullptr; }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
