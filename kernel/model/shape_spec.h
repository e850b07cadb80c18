// What `--shapes`, `--padding` and `--overflow` say: at which sizes of the inputs a model has plans of its
// own, and what becomes of a request that has none. Text and checks that need no model; docs/shapes.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regie {

struct ShapeSpec {
  enum Mode : uint8_t { kDynamic, kBuckets } mode = kDynamic;
  struct Axis {
    std::string input;
    uint32_t axis = 0;
    std::vector<int64_t> sizes;  // ascending
  };
  std::vector<Axis> axes;
  // kAllow: up to the next size, where that changes no result; kRefuse: a request has one of the sizes, or is
  // above them; kForce: padded with zeros whatever comes of it.
  enum Padding : uint8_t { kAllow, kRefuse, kForce } padding = kAllow;
  // Above the largest size; with kRefuse and kDynamic, between them too.
  enum Overflow : uint8_t { kError, kRunDynamic, kResize } overflow = kError;
};

// "dynamic", "buckets:x.0=1|4|16,x.2=320|640", "max:x.0=16". Empty `padding` and `overflow`: the defaults.
// INVALID_INPUT says what is expected; "--shapes" is its place.
Result<ShapeSpec> read_shape_spec(std::string_view shapes, std::string_view padding,
                                  std::string_view overflow);
std::string to_text(const ShapeSpec& spec);  // "buckets:x.0=1|4"
const char* to_text(ShapeSpec::Padding padding);
const char* to_text(ShapeSpec::Overflow overflow);

}  // namespace regie
