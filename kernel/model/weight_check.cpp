#include "model/weight_check.h"

#include <algorithm>
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

Status check_weights(const UncheckedWeights& weights, const MappedParts& kept, const std::string& path) {
  const uint64_t actual =
      hash64(weights.bytes, MappedFile::expect, [&](HashPiece piece) { forget_others(piece, kept); });
  return check_sum(static_cast<uint32_t>(SectionKind::kWeights), actual, weights.checksum, path);
}

std::shared_ptr<const WeightCheck> WeightCheck::begin(const UncheckedWeights& weights, MappedParts kept,
                                                      std::shared_ptr<const void> owner, std::string path) {
  std::shared_ptr<WeightCheck> check(new WeightCheck);
  check->owner_ = std::move(owner);
  auto work = [weights, kept = std::move(kept), path = std::move(path)] {
    return check_weights(weights, kept, path);
  };
  try {
    check->result_ = std::async(std::launch::async, work).share();
  } catch (const std::system_error&) {
    // No thread is to be had: whoever waits does it.
    check->result_ = std::async(std::launch::deferred, std::move(work)).share();
  }
  return check;
}

}  // namespace regie
