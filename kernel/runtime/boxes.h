// What padding and cropping move: the part of a dense tensor that two of different sizes have in common, at
// the start of every axis. And the image that was too large, made smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace regie {

// Copies the elements that both have; `dims` of each, of equal rank. The rest of `to` is not touched.
void copy_box(const std::byte* from, std::span<const int64_t> from_dims, std::byte* to,
              std::span<const int64_t> to_dims, size_t elem_bytes);

// The rest is zero. `to` is larger, or as large, on every axis.
void pad_box(const std::byte* from, std::span<const int64_t> from_dims, std::byte* to,
             std::span<const int64_t> to_dims, size_t elem_bytes);

// f32 planes from height x width to another, by bilinear interpolation between the centres of the elements.
void resize_planes(const float* from, int64_t planes, int64_t height, int64_t width, float* to,
                   int64_t to_height, int64_t to_width);

}  // namespace regie
