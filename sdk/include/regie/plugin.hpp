// Header-only C++ veneer over the plug-in C interfaces: strings, attributes, failures, the entry symbol. A plug-in that
// uses it links nothing. Code inside may throw `regie::sdk::Failure` or any std::exception: `guard` turns it into a status
// before it reaches the boundary.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/view.h"

namespace regie::sdk {

inline std::string_view sv(regie_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }
inline regie_str str(std::string_view s) { return {s.data(), s.size()}; }
// For tables of static data: regie_str of a literal.
template <size_t N>
constexpr regie_str lit(const char (&text)[N]) {
  return {text, N - 1};
}

// What plug-in code throws; never crosses the boundary.
struct Failure : std::exception {
  Failure(regie_status c, std::string m, std::string w = {}) : code(c), message(std::move(m)), where(std::move(w)) {}
  const char* what() const noexcept override { return message.c_str(); }
  regie_status code;
  std::string message, where;
};

inline regie_status fail(const regie_host* host, regie_status code, std::string_view message, std::string_view where = {}) {
  return host->fail(code, str(message), str(where));
}

// Runs `body`; its exceptions become a status with their words. Every table function of a C++ plug-in is one of these.
template <class F>
regie_status guard(const regie_host* host, F&& body) noexcept {
  try {
    body();
    return REGIE_OK;
  } catch (const Failure& f) {
    return f.message.empty() ? f.code : fail(host, f.code, f.message, f.where);
  } catch (const std::bad_alloc&) {
    return fail(host, REGIE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return fail(host, REGIE_INTERNAL, e.what());
  } catch (...) {
    return fail(host, REGIE_INTERNAL, "unknown exception");
  }
}

// Throws for a status that the host gave (the host keeps its words, so none are added).
inline void check(regie_status code) {
  if (code != REGIE_OK) throw Failure(code, {});
}

class Attrs {
 public:
  Attrs(const regie_attr* attrs, uint32_t count) : attrs_(attrs), count_(count) {}
  explicit Attrs(const regie_node& n) : Attrs(n.attrs, n.attr_count) {}
  const regie_attr* find(std::string_view name) const {
    for (uint32_t i = 0; i < count_; ++i)
      if (sv(attrs_[i].name) == name) return &attrs_[i];
    return nullptr;
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t fallback) const {
    const regie_attr* a = typed(name, REGIE_ATTR_INT, "an integer");
    return a ? a->v.i : fallback;
  }
  double number(std::string_view name, double fallback) const {
    const regie_attr* a = typed(name, REGIE_ATTR_FLOAT, "a float");
    return a ? a->v.f : fallback;
  }
  std::string_view text(std::string_view name, std::string_view fallback) const {
    const regie_attr* a = typed(name, REGIE_ATTR_STRING, "a string");
    return a ? sv(a->v.s) : fallback;
  }
  std::optional<std::span<const int64_t>> integers(std::string_view name) const {
    const regie_attr* a = typed(name, REGIE_ATTR_INTS, "a list of integers");
    if (!a) return std::nullopt;
    return std::span<const int64_t>(a->v.ints, a->count);
  }
  std::optional<std::span<const double>> numbers(std::string_view name) const {
    const regie_attr* a = typed(name, REGIE_ATTR_FLOATS, "a list of floats");
    if (!a) return std::nullopt;
    return std::span<const double>(a->v.floats, a->count);
  }
  const regie_tensor* tensor(std::string_view name) const {
    const regie_attr* a = typed(name, REGIE_ATTR_TENSOR, "a tensor");
    return a ? a->v.tensor : nullptr;
  }

 private:
  const regie_attr* typed(std::string_view name, uint32_t kind, const char* what) const {
    const regie_attr* a = find(name);
    if (a && a->kind != kind)
      throw Failure(REGIE_INVALID_MODEL, "attribute '" + std::string(name) + "' must be " + what);
    return a;
  }
  const regie_attr* attrs_;
  uint32_t count_;
};

// Keys and values of a regie_config.
class Config {
 public:
  explicit Config(const regie_config* c) : c_(c) {}
  std::optional<std::string_view> find(std::string_view key) const {
    for (uint32_t i = 0; c_ && i < c_->count; ++i)
      if (sv(c_->settings[i].key) == key) return sv(c_->settings[i].value);
    return std::nullopt;
  }
  int64_t integer(std::string_view key, int64_t fallback) const {
    auto v = find(key);
    if (!v) return fallback;
    try {
      size_t used = 0;
      int64_t n = std::stoll(std::string(*v), &used);
      if (used == v->size()) return n;
    } catch (const std::exception&) {
    }
    throw Failure(REGIE_INVALID_INPUT, "option '" + std::string(key) + "' must be an integer, not '" + std::string(*v) + "'");
  }

 private:
  const regie_config* c_;
};

// Dimension arithmetic over the host's table.
class Dims {
 public:
  Dims(const regie_host* host, regie_dim_table* table) : host_(host), table_(table) {}
  regie_dim add(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_ADD, a, b); }
  regie_dim sub(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_SUB, a, b); }
  regie_dim mul(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_MUL, a, b); }
  regie_dim floordiv(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_FLOORDIV, a, b); }
  regie_dim ceildiv(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_CEILDIV, a, b); }
  regie_dim mod(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_MOD, a, b); }
  regie_dim min(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_MIN, a, b); }
  regie_dim max(regie_dim a, regie_dim b) const { return host_->dim_op(table_, REGIE_DIM_MAX, a, b); }
  regie_dim product(std::span<const regie_dim> dims) const {
    regie_dim p = 1;
    for (regie_dim d : dims) p = mul(p, d);
    return p;
  }
  std::pair<int64_t, int64_t> range(regie_dim d) const {
    int64_t lo = 0, hi = 0;
    host_->dim_range(table_, d, &lo, &hi);
    return {lo, hi};
  }
  std::string print(regie_dim d) const {
    std::string text(host_->dim_print(table_, d, nullptr, 0), '\0');
    host_->dim_print(table_, d, text.data(), text.size() + 1);
    return text;
  }
  // States that the symbol `d` is `value` wherever the graph is used; false if its range does not allow that. An
  // expression of symbols is left as it is.
  bool fix(regie_dim d, int64_t value) const {
    const std::string text = print(d);
    std::string name;
    if (text.size() > 2 && text.front() == '"') {
      size_t i = 1;
      for (; i < text.size() && text[i] != '"'; ++i) name += text[i] == '\\' ? text[++i] : text[i];
      if (i + 1 != text.size()) return true;
    } else {
      for (char c : text)
        if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')) return true;
      name = text;
    }
    return host_->dim_symbol(table_, str(name), value, value, 0) == d;
  }

 private:
  const regie_host* host_;
  regie_dim_table* table_;
};

inline std::span<const regie_dim> dims_of(const regie_type& t) { return {t.dims, static_cast<size_t>(t.rank < 0 ? 0 : t.rank)}; }
inline std::span<const int64_t> dims_of(const regie_tensor& t) { return {t.dims, static_cast<size_t>(t.rank)}; }
inline int64_t count_of(const regie_tensor& t) {
  int64_t n = 1;
  for (int64_t d : dims_of(t)) n *= d;
  return n;
}

constexpr regie_table_head head(size_t size, const char* digest) { return {static_cast<uint32_t>(size), 0, digest}; }

}  // namespace regie::sdk

#ifndef REGIE_PLUGIN_BUILD_FLAGS
#define REGIE_PLUGIN_BUILD_FLAGS 0
#endif

// The entry symbol. `find` is `const void* find(const char* interface_id)`.
#define REGIE_PLUGIN(plugin_name, plugin_version, find_function)                                                    \
  extern "C" REGIE_EXPORT const regie_plugin_entry_t regie_plugin_entry = {                                         \
      REGIE_ENTRY_MAGIC, sizeof(regie_plugin_entry_t), REGIE_ABI_MAJOR, REGIE_ABI_MINOR, REGIE_PLUGIN_BUILD_FLAGS, 0, \
      plugin_name,       plugin_version,               find_function};
