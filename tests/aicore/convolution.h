// Convolutions of random shapes, for whatever elements: drawn, told to a node, walked through.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "node.h"

namespace aicore::test {

struct Convolution {
  // One spatial axis; a wide map of few channels; a small map of many; else the usual.
  bool flat = false, wide = false, deep = false, depthwise = false;
  int64_t n = 1, group = 1, in = 1, out = 1, h = 1, w = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1, top = 0, left = 0, bottom = 0, right = 0;

  // Input channels: so many at most, as many groups of one, and as many of each of a few groups.
  void draw_channels(Random& random, int64_t usual, int64_t single, int64_t each) {
    const int64_t kinds = pick(random, 0, 3), sizes = pick(random, 0, 9);
    flat = sizes == 0;
    wide = sizes == 1;
    deep = sizes == 2;
    depthwise = kinds == 1;
    in = pick(random, 1, of_size(600, 6, usual));
    out = pick(random, 1, of_size(300, 20, 70));
    if (depthwise) {
      group = in = pick(random, 2, single);
      out = in * pick(random, 1, 2);
    } else if (kinds == 2) {
      group = pick(random, 2, 6);
      in = group * pick(random, 1, each);
      out = group * pick(random, 1, 20);
    }
  }
  // Each at most. False where the window is larger than the map.
  bool draw_map(Random& random, int64_t high, int64_t broad, int64_t strides, int64_t dilations) {
    auto rows = [&](int64_t low, int64_t most) { return flat ? low : pick(random, low, most); };
    n = pick(random, 1, 3);
    kh = rows(1, high);
    kw = pick(random, 1, broad);
    sh = rows(1, strides);
    sw = pick(random, 1, strides);
    dh = rows(1, dilations);
    dw = pick(random, 1, dilations);
    top = rows(0, kh);
    left = pick(random, 0, kw);
    bottom = rows(0, kh);
    right = pick(random, 0, kw);
    const int64_t reach_h = (kh - 1) * dh + 1, reach_w = (kw - 1) * dw + 1;
    if (!flat) h = std::max(reach_h - top - bottom, int64_t{1}) + pick(random, 0, of_size(6, 60, 20));
    w = std::max(reach_w - left - right, int64_t{1}) + pick(random, 0, flat ? 260 : of_size(7, 260, 24));
    oh = (h + top + bottom - reach_h) / sh + 1;
    ow = (w + left + right - reach_w) / sw + 1;
    return h + top + bottom >= reach_h && w + left + right >= reach_w;
  }
  int64_t products() const { return n * out * oh * ow * in / group * kh * kw; }

  std::vector<int64_t> x_dims() const { return {n, in, h, w}; }
  std::vector<int64_t> w_dims() const { return {out, in / group, kh, kw}; }
  std::vector<int64_t> y_dims() const { return {n, out, oh, ow}; }
  // Without the first spatial axis where there is one only.
  std::vector<int64_t> spatial(std::vector<int64_t> both) const {
    if (flat) both.erase(both.end() - 2);
    return both;
  }
  Array shaped(Array a) const {
    a.dims = spatial(std::move(a.dims));
    return a;
  }
  void put_attrs(Node& node) const {
    node.attr("group", group).attr("strides", spatial({sh, sw})).attr("dilations", spatial({dh, dw}));
    node.attr("pads", flat ? std::vector{left, right} : std::vector{top, left, bottom, right});
  }
  std::string text() const {
    std::ostringstream s;
    s << "x " << n << ' ' << in << ' ' << h << ' ' << w << ", w " << out << ' ' << kh << ' ' << kw
      << ", group " << group << ", strides " << sh << ' ' << sw << ", dilations " << dh << ' ' << dw
      << ", pads " << top << ' ' << left << ' ' << bottom << ' ' << right;
    return s.str();
  }

  // Calls body(image, output channel, element) for all of the result, in its order.
  template <class Body>
  void each_element(Body&& body) const {
    for (int64_t b = 0; b < n; ++b)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t i = 0; i < oh * ow; ++i) body(b, o, i);
  }
  // Calls body(place in the input, place in the weights) for what an element is the sum of.
  template <class Body>
  void each_product(int64_t b, int64_t o, int64_t element, Body&& body) const {
    const int64_t y = element / ow, z = element % ow;
    for (int64_t c = 0; c < in / group; ++c)
      for (int64_t i = 0; i < kh; ++i)
        for (int64_t j = 0; j < kw; ++j) {
          const int64_t row = y * sh - top + i * dh, column = z * sw - left + j * dw;
          if (row < 0 || row >= h || column < 0 || column >= w) continue;
          const int64_t channel = o / (out / group) * (in / group) + c;
          body(static_cast<size_t>(((b * in + channel) * h + row) * w + column),
               static_cast<size_t>(((o * (in / group) + c) * kh + i) * kw + j));
        }
  }

 private:
  int64_t of_size(int64_t when_deep, int64_t when_wide, int64_t usual) const {
    return deep ? when_deep : wide ? when_wide : usual;
  }
};

}  // namespace aicore::test
