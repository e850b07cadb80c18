// The entry of the ONNX frontend: tables only; reading starts in builder.cpp.
#include "builder.h"
#include "reader.h"
#include "regie/plugin.hpp"
#include "regie_digests.h"

namespace {

using regie::sdk::lit;

const regie_frontend_info kInfo[] = {
    {lit("onnx"), lit("ONNX models, operator sets 1 to 28, as the canonical operators at revision 21"),
     lit(".onnx .pb")}};

uint32_t probe(uint32_t, regie_str path, const void* head, uint64_t head_size, uint64_t file_size) {
  return regie::onnx::probe_model(regie::sdk::sv(path), head, head_size, file_size);
}

regie_status import_model(uint32_t, const regie_import* import) { return regie::onnx::import_model(import); }

const regie_frontend_table kTable = {
    regie::sdk::head(sizeof(regie_frontend_table), REGIE_DIGEST_FRONTEND), 1, 0, kInfo, probe, import_model};

const void* find(const char* interface_id) {
  return std::string_view(interface_id) == REGIE_FRONTEND_ID ? &kTable : nullptr;
}

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
