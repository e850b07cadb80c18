// The container of a .rgm file: header and section table, without knowledge of what the sections mean. Header
// and table have this form in every format version, so that any version can say which one wrote a file. See
// docs/model-file.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "model/weight_check.h"

namespace regie {

enum class SectionKind : uint32_t {
  kModel = 1,
  kGraph = 2,
  kLedger = 3,
  kKernels = 4,
  kWeights = 5,
  kPlans = 6
};
inline constexpr uint32_t kSectionOptional = 1;  // a reader that does not know the kind may go on without it
inline constexpr size_t kHeaderBytes = 64, kSectionEntryBytes = 40, kPageBytes = 4096;
inline constexpr std::string_view kModelMagic = "REGIERGM";

std::string section_name(uint32_t kind);  // "weights"; "of unknown kind 9"

struct Section {
  uint32_t kind = 0, flags = 0;
  std::span<const std::byte> bytes;
};

struct SectionPlace {
  uint64_t offset = 0, size = 0, checksum = 0;
};

// Header, table and the places of the sections: kernels and what is small on 64 bytes, weights on pages.
struct Layout {
  std::string head;  // header and table as they stand in the file
  std::vector<SectionPlace> places;
  uint64_t total = 0;
};
Layout lay_out(std::span<const Section> sections, uint32_t format_version);

// Quick looks: nothing is checked but that it lies in the file. data() is NULL if the table names no such
// section.
std::span<const std::byte> glance_at_section(std::span<const std::byte> file, SectionKind kind);
bool names_section(std::span<const std::byte> file, SectionKind kind);

// Writes a whole file of them.
Status write_sections(std::span<const Section> sections, const std::string& path, Sync sync);

// 16 digits: the checksum that the header has of itself and the table, and so of all sections; empty if it is
// no model file. Tells one file from another without reading either.
std::string head_checksum_text(std::span<const std::byte> file);

// CORRUPT if the checksum of a section is not what the file says.
Status check_sum(uint32_t kind, uint64_t actual, uint64_t expected, const std::string& path);

// Checks magic, version, lengths, every checksum, and that the gaps are zero. `path` for messages.
// `weights`: not NULL: the weights' checksum is left to the caller.
Result<std::vector<Section>> read_sections(std::span<const std::byte> file, const std::string& path,
                                           UncheckedWeights* weights = nullptr);

}  // namespace regie
