// A plug-in with one pass over the C headers alone. As it stands it is right; the macros of a test case make
// one thing wrong.
#include <cstring>
#include <stdexcept>

#include "regie/c/pass.h"
#include "regie/c/scheduler.h"
#include "regie_digests.h"

#ifndef ENTRY_MAGIC
#define ENTRY_MAGIC REGIE_ENTRY_MAGIC
#endif
#ifndef ENTRY_SIZE
#define ENTRY_SIZE sizeof(regie_plugin_entry_t)
#endif
#ifndef ABI_MAJOR
#define ABI_MAJOR REGIE_ABI_MAJOR
#endif
#ifndef ABI_MINOR
#define ABI_MINOR REGIE_ABI_MINOR
#endif
#ifndef ENTRY_FLAGS
#define ENTRY_FLAGS REGIE_PLUGIN_BUILD_FLAGS
#endif
#ifndef ENTRY_NAME
#define ENTRY_NAME REGIE_PLUGIN_NAME
#endif
#ifndef ENTRY_VERSION
#define ENTRY_VERSION REGIE_PLUGIN_VERSION
#endif
#ifndef ENTRY_FIND
#define ENTRY_FIND find
#endif
#ifndef TABLE_DIGEST
#define TABLE_DIGEST REGIE_DIGEST_PASS
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(regie_pass_table)
#endif
#ifndef TABLE_RUN
#define TABLE_RUN run
#endif
#ifndef TABLE_LIST
#define TABLE_LIST kPasses
#endif
#ifndef TABLE_COUNT
#define TABLE_COUNT (sizeof kPasses / sizeof kPasses[0])
#endif

struct regie_pass {};

namespace {

template <size_t N>
constexpr regie_str lit(const char (&text)[N]) {
  return {text, N - 1};
}

[[maybe_unused]] regie_status create(uint32_t, const regie_host* host, const regie_config* options,
                                     regie_pass** pass) {
#if defined(CREATE_THROWS)
  if (host && options && pass) throw std::logic_error("out of the plug-in");
#elif defined(CREATE_RETURNS)
  if (host && options && pass) return CREATE_RETURNS;
#endif
  *pass = new regie_pass;
  return REGIE_OK;
}

[[maybe_unused]] regie_status run(regie_pass*, const regie_pass_context*) { return REGIE_OK; }

void destroy(regie_pass* pass) { delete pass; }

#define ONE_PASS \
  { lit(PASS_NAME), lit("A pass for tests."), 0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr }
[[maybe_unused]] const regie_pass_info kPasses[] = {
    ONE_PASS,
#ifdef TWO_PASSES
    ONE_PASS,
#endif
};
const regie_pass_table kTable = {
    {TABLE_SIZE, 0, TABLE_DIGEST}, TABLE_COUNT, 0, TABLE_LIST, create, TABLE_RUN, destroy};

#ifdef ALSO_SCHEDULER
regie_status schedule(uint32_t, const regie_host*, const regie_config*, const regie_schedule_problem*) {
  return REGIE_OK;
}
const regie_scheduler_table kScheduler = {
    {sizeof(regie_scheduler_table), 0, REGIE_DIGEST_SCHEDULER}, 1, 0, kPasses, schedule};
#endif

[[maybe_unused]] const void* find(const char* id) {
#ifdef FIND_THROWS
  if (id) throw std::runtime_error("find");
#endif
#ifdef ALSO_SCHEDULER
  if (std::strcmp(id, REGIE_SCHEDULER_ID) == 0) return &kScheduler;
#endif
  return std::strcmp(id, REGIE_PASS_ID) == 0 ? &kTable : nullptr;
}

}  // namespace

extern "C" REGIE_EXPORT const regie_plugin_entry_t regie_plugin_entry = {
    ENTRY_MAGIC, ENTRY_SIZE, ABI_MAJOR, ABI_MINOR, ENTRY_FLAGS, 0, ENTRY_NAME, ENTRY_VERSION, ENTRY_FIND};
