#include "model/weight_check.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "model/sections.h"

namespace regie {

namespace {

// Takes what no run reads out of the process's memory again.
void forget_others(HashPiece piece, const MappedParts& kept) {
  const std::byte *at = piece.data(), *end = piece.data() + piece.size();
  auto k = std::upper_bound(
      kept.begin(), kept.end(), at,
      [](const std::byte* p, std::span<const std::byte> s) { return p < s.data() + s.size(); });
  for (; at < end; ++k) {
    const std::byte* next = k == kept.end() ? end : std::min(end, k->data());
    if (at < next) MappedFile::forget({at, next});
    if (k == kept.end()) break;
    at = std::max(at, k->data() + k->size());
  }
}

}  // namespace

Status check_weights(const UncheckedWeights& weights, const std::string& path) {
  const uint64_t actual = hash64(std::span(&weights.bytes, 1), MappedFile::expect,
                                 [&](HashPiece piece) { forget_others(piece, weights.read); });
  return check_sum(static_cast<uint32_t>(SectionKind::kWeights), actual, weights.checksum, path);
}

// The parts in pieces, whose checksums are found by as many threads as come to help.
class WeightPieces {
 public:
  explicit WeightPieces(const MappedParts& parts) {
    for (HashPiece rest : parts)
      while (!rest.empty()) {
        pieces_.push_back(rest.first(std::min(rest.size(), kPiece)));
        rest = rest.subspan(pieces_.back().size());
      }
    sums_.resize(pieces_.size());
  }
  // Of the next piece; false: there is none left.
  bool find_next() {
    const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_.size()) return false;
    MappedFile::expect(pieces_[i]);
    sums_[i] = little_endian(hash64(pieces_[i].data(), pieces_[i].size()));
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces_.size()) done_.notify_all();
    return true;
  }
  // Takes pieces until none is left, then waits for those that other threads have taken.
  void find() {
    while (find_next()) {
    }
    for (size_t n = 0; (n = done_.load(std::memory_order_acquire)) < pieces_.size();)
      done_.wait(n, std::memory_order_acquire);
  }
  uint64_t checksum() {
    find();
    return hash64(sums_.data(), sums_.size() * sizeof(uint64_t));
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 20;
  static uint64_t little_endian(uint64_t n) {
    return std::endian::native == std::endian::little ? n : __builtin_bswap64(n);
  }
  MappedParts pieces_;
  std::vector<uint64_t> sums_;
  std::atomic<size_t> next_ = 0, done_ = 0;
};

uint64_t checksum_of(const MappedParts& parts) { return WeightPieces(parts).checksum(); }

WeightCheck::WeightCheck() = default;
WeightCheck::~WeightCheck() = default;

const Status& WeightCheck::wait() const {
  if (!pieces_) return all_.get();
  std::call_once(once_, [this] {
    read_ = check_sum(static_cast<uint32_t>(SectionKind::kWeights), pieces_->checksum(), sum_, path_);
  });
  return read_;
}

std::shared_ptr<const WeightCheck> WeightCheck::begin(UncheckedWeights weights,
                                                      std::shared_ptr<const void> owner, std::string path) {
  constexpr size_t kSmall = size_t{1} << 20;  // read sooner than a thread is there
  std::shared_ptr<WeightCheck> check(new WeightCheck);
  check->owner_ = std::move(owner);
  check->path_ = path;
  check->sum_ = weights.read_checksum;
  size_t bytes = 0;
  for (const auto& part : weights.read) bytes += part.size();
  // Weights that lie on each other are more than all of the section: nobody writes them so.
  const bool apart = weights.read_checksum != 0 && bytes <= weights.bytes.size();
  if (apart) check->pieces_ = std::make_unique<WeightPieces>(weights.read);
  const bool at_once = !apart && weights.bytes.size() > kSmall;
  const auto all = [weights = std::move(weights), path = std::move(path)] {
    return check_weights(weights, path);
  };
  try {
    check->all_ = std::async(at_once ? std::launch::async : std::launch::deferred, all).share();
  } catch (const std::system_error&) {
    check->all_ = std::async(std::launch::deferred, all).share();  // without a thread: whoever waits does it
  }
  if (apart && bytes > kSmall)
    check->other_.begin(Background::Urgency::kChecksums, 1,
                        [pieces = check->pieces_.get()] { return pieces->find_next(); });
  return check;
}

}  // namespace regie
