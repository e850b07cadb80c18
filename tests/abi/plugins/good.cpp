// A plug-in that is right and leans on its standard library: exceptions, containers, streams, regular
// expressions. Built with another compiler and another standard library than the host it must work just so.
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "regie/c/pass.h"
#include "regie/plugin.hpp"
#include "regie_digests.h"

struct regie_pass {
  std::map<std::string, std::string> options;
};

namespace {

namespace sdk = regie::sdk;

regie_status create(uint32_t, const regie_host* host, const regie_config* options, regie_pass** pass) {
  return sdk::guard(host, [&] {
    const sdk::Config config(options);
    if (config.integer("level", 0) > 9) {
      std::ostringstream text;
      text << "level " << config.integer("level", 0) << " is above " << 9;
      throw sdk::Failure(REGIE_INVALID_INPUT, text.str());
    }
    if (auto pattern = config.find("pattern")) std::regex{std::string(*pattern)};
    *pass = new regie_pass;
    for (uint32_t i = 0; i < options->count; ++i)
      (*pass)->options.emplace(sdk::sv(options->settings[i].key), sdk::sv(options->settings[i].value));
  });
}

regie_status run(regie_pass*, const regie_pass_context*) { return REGIE_OK; }

void destroy(regie_pass* pass) { delete pass; }

const regie_pass_info kPasses[] = {
    {sdk::lit(PASS_NAME), sdk::lit("A pass for tests."), 0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr}};
const regie_pass_table kTable = {
    sdk::head(sizeof(regie_pass_table), REGIE_DIGEST_PASS), 1, 0, kPasses, create, run, destroy};

const void* find(const char* id) { return std::string_view(id) == REGIE_PASS_ID ? &kTable : nullptr; }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
