// regie-tile: tile programs between text and bytes, and the verifier.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "regie/plugin.hpp"
#include "regie/tile/codec.h"
#include "regie/tile/verify.h"

namespace {

using namespace regie;

constexpr const char* kUsage =
    "usage: regie-tile asm PROGRAM.tile -o KERNEL     text to bytes\n"
    "       regie-tile disasm KERNEL [-o FILE]        bytes to text\n"
    "       regie-tile verify FILE [--unused]         walks every instruction of every core; either form\n"
    "--unused: bytes on chip that are written and never read are a fault too.\n";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  if (!in || !(out << in.rdbuf())) {
    if (in && in.peek() == std::char_traits<char>::eof()) return {};
    throw sdk::Failure(REGIE_NOT_FOUND, "cannot be read: " + std::string(std::strerror(errno)), path);
  }
  return out.str();
}

// To a temporary name, then renamed, so that nothing half-written is left; into devices and pipes as they
// are.
void write_file(const std::string& path, const std::string& bytes, const std::string& source) {
  std::error_code none;
  if (std::filesystem::equivalent(path, source, none))
    throw sdk::Failure(REGIE_INVALID_INPUT, "is what is read; write to another file", path);
  const bool in_place = std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none);
  const std::string to = in_place ? path : path + ".part";
  errno = 0;
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  if (out && (in_place || std::rename(to.c_str(), path.c_str()) == 0)) return;
  const std::string why = std::strerror(errno);
  if (!in_place) std::remove(to.c_str());
  throw sdk::Failure(REGIE_IO, "cannot be written: " + why, path);
}

tile::Program read_program(const std::string& path) {
  std::string bytes = read_file(path);
  uint32_t magic = 0;
  if (bytes.size() >= 4) std::memcpy(&magic, bytes.data(), 4);
  if (magic != REGIE_TILE_MAGIC) return tile::assemble(bytes, path);
  try {
    return tile::decode(bytes);
  } catch (const sdk::Failure& f) {
    throw sdk::Failure(f.code, f.message, path);
  }
}

int run(const std::vector<std::string>& words, const std::string& output, bool unused) {
  if (words.size() != 2) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const std::string &command = words[0], &path = words[1];
  if (command == "asm" && !output.empty()) {
    write_file(output, tile::encode(tile::assemble(read_file(path), path)), path);
  } else if (command == "disasm") {
    std::string text;
    try {
      text = tile::disassemble(tile::decode(read_file(path)));
    } catch (const sdk::Failure& f) {
      throw sdk::Failure(f.code, f.message, f.where.empty() ? path : f.where);
    }
    if (!output.empty())
      write_file(output, text, path);
    else if (std::fputs(text.c_str(), stdout) < 0)
      throw sdk::Failure(REGIE_IO, std::string("cannot be written: ") + std::strerror(errno),
                         "standard output");
  } else if (command == "verify" && output.empty()) {
    tile::VerifyOptions options;
    options.report_unused = unused;
    tile::VerifyResult r = tile::verify(read_program(path), options);
    if (!r.ok())
      throw sdk::Failure(REGIE_INVALID_INPUT, std::string(tile::fault_name(r.fault)) + ": " + r.message,
                         path);
    std::printf("%s: no fault in %llu concrete instructions\n", path.c_str(),
                static_cast<unsigned long long>(r.instructions));
  } else {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  std::string output;
  bool unused = false;
  for (int i = 1; i < argc; ++i) {
    std::string w = argv[i];
    if (w == "--help" || w == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (w == "-o" && i + 1 < argc)
      output = argv[++i];
    else if (w == "--unused")
      unused = true;
    else
      words.push_back(w);
  }
  try {
    const int code = run(words, output, unused);
    if (std::fflush(stdout) != 0)
      throw sdk::Failure(REGIE_IO, std::string("cannot be written: ") + std::strerror(errno),
                         "standard output");
    return code;
  } catch (const sdk::Failure& f) {
    std::fprintf(stderr, "regie-tile: %s%s%s\n", f.where.c_str(), f.where.empty() ? "" : ": ",
                 f.message.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "regie-tile: %s\n", e.what());
  }
  return 2;
}
