#include "sections.h"

#include <algorithm>

namespace packed {

namespace {

// Ranks of all moments, by direct look-up where they are dense, as steps of a schedule are.
class Moments {
 public:
  explicit Moments(std::span<const Life> lives) {
    uint64_t last = 0;
    for (const Life& l : lives) last = std::max(last, l.upper);
    if (last <= 8 * lives.size() + 64) {
      dense_.assign(last + 1, 0);
      for (const Life& l : lives) dense_[l.lower] = dense_[l.upper] = 1;
      for (uint32_t& d : dense_) {
        const bool used = d != 0;
        d = count_;
        count_ += used;
      }
      return;
    }
    sorted_.reserve(2 * lives.size());
    for (const Life& l : lives) {
      sorted_.push_back(l.lower);
      sorted_.push_back(l.upper);
    }
    std::sort(sorted_.begin(), sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
    count_ = static_cast<uint32_t>(sorted_.size());
  }
  uint32_t count() const { return count_; }
  uint32_t rank(uint64_t moment) const {
    if (!dense_.empty()) return dense_[moment];
    return static_cast<uint32_t>(std::lower_bound(sorted_.begin(), sorted_.end(), moment) - sorted_.begin());
  }

 private:
  std::vector<uint32_t> dense_;
  std::vector<uint64_t> sorted_;
  uint32_t count_ = 0;
};

}  // namespace

Sections cut_sections(std::span<const Life> lives) {
  Sections s;
  if (lives.empty()) return s;
  const Moments moments(lives);
  s.begin.reserve(lives.size());
  s.end.reserve(lives.size());
  std::vector<uint8_t> starts(moments.count(), 0), ends(moments.count(), 0);
  for (const Life& l : lives) {
    s.begin.push_back(moments.rank(l.lower));
    s.end.push_back(moments.rank(l.upper));
    starts[s.begin.back()] = ends[s.end.back()] = 1;
  }
  // Stretch k lies between moments k and k + 1.
  std::vector<uint32_t> kept_before(moments.count(), 0);
  for (uint32_t k = 0; k < moments.count(); ++k) {
    kept_before[k] = s.count;
    if (k + 1 < moments.count() && starts[k] && ends[k + 1]) ++s.count;
  }
  for (uint32_t& b : s.begin) b = kept_before[b];
  for (uint32_t& e : s.end) e = kept_before[e];
  return s;
}

}  // namespace packed
