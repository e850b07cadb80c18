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

Status check_weights(const UncheckedWeights& weights, const std::string& path) {
  const uint64_t actual = hash64(std::span(&weights.bytes, 1), MappedFile::expect,
                                 [&](HashPiece piece) { forget_others(piece, weights.read); });
  return check_sum(static_cast<uint32_t>(SectionKind::kWeights), actual, weights.checksum, path);
}

uint64_t checksum_of(const MappedParts& parts) {
  return hash64(parts, MappedFile::expect, [](HashPiece) {});
}

std::shared_ptr<const WeightCheck> WeightCheck::begin(UncheckedWeights weights,
                                                      std::shared_ptr<const void> owner, std::string path) {
  constexpr size_t kSmall = size_t{1} << 20;  // read sooner than a thread is there
  std::shared_ptr<WeightCheck> check(new WeightCheck);
  check->owner_ = std::move(owner);
  size_t bytes = 0;
  for (const auto& part : weights.read) bytes += part.size();
  // Weights that lie on each other are more than all of the section: nobody writes them so.
  const bool apart = weights.read_checksum != 0 && bytes <= weights.bytes.size();
  if (!apart) bytes = weights.bytes.size();
  const auto all = [weights, path] { return check_weights(weights, path); };
  const auto read = [weights, path] {
    return check_sum(static_cast<uint32_t>(SectionKind::kWeights), checksum_of(weights.read),
                     weights.read_checksum, path);
  };
  auto begin = [&](std::launch when) {
    check->read_ = (apart ? std::async(when, read) : std::async(when, all)).share();
  };
  try {
    begin(bytes > kSmall ? std::launch::async : std::launch::deferred);
  } catch (const std::system_error&) {
    begin(std::launch::deferred);  // no thread is to be had: whoever waits does it
  }
  check->all_ = apart ? std::async(std::launch::deferred, all).share() : check->read_;
  return check;
}

}  // namespace regie
