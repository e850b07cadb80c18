// Room for the code that oneDNN generates. Its assembler maps 256 KiB of its own for each piece of code, of
// which it fills a page or two, and then makes it executable: of 64 pages at once, which empties the whole
// cache of addresses, on every processor that runs the process, and stops other threads' page faults
// meanwhile. A network has a hundred pieces and more. Here they lie in regions that are mapped once, with the
// protection that oneDNN gives its code in the end.
//
// The library has no setting for it, so its calls of mmap, mprotect and munmap are led here through its table
// of imported functions. Whatever is not as expected (another processor, another library, a system that
// refuses such memory) leaves everything as it was. docs/decisions/0024 says why.
#pragma once

namespace host_cpu {

// Before oneDNN generates its first kernel; later calls do nothing. REGIE_CODE_POOL=off in the environment:
// never.
void pool_generated_code();

}  // namespace host_cpu
