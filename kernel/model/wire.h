// Model <-> the protobuf of model.proto, as bytes: the only place that knows the wire schema.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"
#include "model/model.h"

namespace regie {

struct WireModel {
  std::string model;    // section "model"
  std::string kernels;  // section "kernels": blobs, equal ones once, each on 64 bytes
};
// The same model gives the same bytes.
// `read_checksum`: of the weights that tasks read, in the order of read_by_tasks (weight_check.h).
Result<WireModel> to_wire(const Model& model, uint64_t read_checksum = 0);
// Everything but weights, graph and ledger. Only what protobuf cannot express is checked here: see check.h
// for the rest.
Status from_wire(std::span<const std::byte> bytes, std::span<const std::byte> kernels, Model* model);

}  // namespace regie
