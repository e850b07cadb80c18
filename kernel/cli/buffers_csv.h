// Memory problems as text, as MiniMalloc writes them: a header, then one buffer a line. Columns id, lower,
// upper and size, in any order; `alignment` and `offset` (a fixed place) may be there, and an empty cell says
// nothing. Other columns are kept as they are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "regie/c/memory.h"

namespace regie::cli {

struct BufferTable {
  std::shared_ptr<const std::string> text;  // the file; the views look into it
  std::string_view header;
  int offset_column = -1;  // -1: none yet
  std::vector<std::string_view> rows, ids;
  std::vector<uint32_t> lines;  // by row, from 1
  std::vector<regie_memory_buffer> buffers;
};

// `alignment`: at least that, for buffers that are not fixed. INVALID_INPUT with file and line.
Result<BufferTable> read_buffers(const std::string& path, uint64_t alignment);

// The rows with `offsets` in the offset column, which comes last if there was none. All or nothing.
Status write_buffers(const std::string& path, const BufferTable& table, const std::vector<uint64_t>& offsets);

// A whole number of 64 bits without sign, or nothing.
bool parse_whole(std::string_view text, uint64_t* value);

}  // namespace regie::cli
