// A pass whose `create` writes and reads a protobuf message `abi.Message`. Another plug-in has a message of
// that very name with other fields. The option "text" goes through the message and must come back.
#include <string>

#include "message.pb.h"
#include "regie/c/pass.h"
#include "regie/plugin.hpp"
#include "regie_digests.h"

struct regie_pass {
  std::string bytes;
};

namespace {

namespace sdk = regie::sdk;

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

regie_status create(uint32_t, const regie_host* host, const regie_config* options, regie_pass** pass) {
  return sdk::guard(host, [&] {
    const std::string text(sdk::Config(options).find("text").value_or(""));
    abi::Message out, in;
    out.JOIN(set_, FIELD)(text);
    const std::string bytes = out.SerializeAsString();
    if (!in.ParseFromString(bytes) || in.FIELD() != text || in.GetTypeName() != "abi.Message")
      throw sdk::Failure(REGIE_INTERNAL, "the message came back changed");
    *pass = new regie_pass{bytes};
  });
}

// The encoded message, as text of a failure: so the test sees the bytes.
regie_status run(regie_pass* pass, const regie_pass_context* context) {
  return sdk::fail(context->host, REGIE_UNSUPPORTED, pass->bytes);
}

void destroy(regie_pass* pass) { delete pass; }

const regie_pass_info kPasses[] = {
    {sdk::lit(PASS_NAME), sdk::lit("Writes a message."), 0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr}};
const regie_pass_table kTable = {
    sdk::head(sizeof(regie_pass_table), REGIE_DIGEST_PASS), 1, 0, kPasses, create, run, destroy};

const void* find(const char* id) { return std::string_view(id) == REGIE_PASS_ID ? &kTable : nullptr; }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
