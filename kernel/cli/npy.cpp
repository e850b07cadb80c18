#include "cli/npy.h"

#include <charconv>
#include <cstring>

#include "base/file.h"

namespace regie::cli {

namespace {

struct Descr {
  regie_elem elem;
  const char* text;
};
constexpr Descr kDescrs[] = {{REGIE_F32, "<f4"}, {REGIE_F64, "<f8"}, {REGIE_F16, "<f2"}, {REGIE_I8, "|i1"},
                             {REGIE_U8, "|u1"},  {REGIE_I16, "<i2"}, {REGIE_U16, "<u2"}, {REGIE_I32, "<i4"},
                             {REGIE_U32, "<u4"}, {REGIE_I64, "<i8"}, {REGIE_U64, "<u8"}, {REGIE_BOOL, "|b1"}};

Status malformed(const std::string& path, const std::string& what) {
  return invalid_input("not a usable .npy file: " + what, path);
}

// The text after 'key': in the header's dictionary.
Result<std::string_view> field(std::string_view header, std::string_view key, const std::string& path) {
  std::string quoted = "'" + std::string(key) + "':";
  size_t at = header.find(quoted);
  if (at == std::string_view::npos) return malformed(path, "its header has no " + quoted);
  std::string_view rest = header.substr(at + quoted.size());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

Result<std::vector<int64_t>> read_shape(std::string_view text, const std::string& path) {
  std::vector<int64_t> dims;
  if (text.empty() || text.front() != '(') return malformed(path, "its shape is no tuple");
  text.remove_prefix(1);
  while (true) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
    if (text.empty()) return malformed(path, "its shape does not end");
    if (text.front() == ')') return dims;
    int64_t n = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || n < 0) return malformed(path, "a dimension of its shape is no number");
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    dims.push_back(n);
  }
}

// From Fortran order, where the first index runs fastest.
Result<Tensor> in_c_order(regie_elem elem, const std::vector<int64_t>& dims, const char* from,
                          const std::string& path) {
  REGIE_ASSIGN(Tensor out, Tensor::try_zeros(elem, dims, path));
  const auto bytes = static_cast<size_t>(elem_bytes(elem, 1));
  std::vector<size_t> strides;  // of an axis, in bytes of the file
  size_t stride = bytes;
  for (int64_t d : dims) {
    strides.push_back(stride);
    stride *= static_cast<size_t>(d);
  }
  auto* to = static_cast<char*>(out.mutable_data());
  std::vector<int64_t> index(dims.size());
  size_t at = 0;
  for (int64_t i = 0; i < out.count(); ++i, to += bytes) {
    std::memcpy(to, from + at, bytes);
    for (size_t axis = dims.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < dims[axis]) break;
      at -= strides[axis] * static_cast<size_t>(dims[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

Result<Tensor> read_npy(const std::string& path) {
  REGIE_ASSIGN(MappedFile file, MappedFile::open(path));
  std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (bytes.size() < 10 || bytes.substr(0, 6) != std::string_view("\x93NUMPY", 6))
    return malformed(path, "it does not begin with the magic of .npy; write it with numpy.save");
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  size_t version = byte(6), start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || bytes.size() < start)
    return malformed(path, "its format version is " + std::to_string(version));
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (bytes.size() - start < length) return malformed(path, "its header is cut off");
  std::string_view header = bytes.substr(start, length);
  REGIE_ASSIGN(std::string_view order, field(header, "fortran_order", path));
  const bool fortran = order.starts_with("True");
  if (!fortran && !order.starts_with("False"))
    return malformed(path, "its fortran_order is neither True nor False");
  REGIE_ASSIGN(std::string_view descr, field(header, "descr", path));
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  for (const Descr& d : kDescrs)
    if (descr.size() > 5 && descr.substr(1, 3) == d.text) elem = d.elem;
  if (elem == REGIE_ELEM_UNKNOWN)
    return malformed(path, "its type " + std::string(descr.substr(0, descr.find(','))) + " is not supported");
  REGIE_ASSIGN(std::string_view shape, field(header, "shape", path));
  REGIE_ASSIGN(std::vector<int64_t> dims, read_shape(shape, path));
  uint64_t need = elem_bytes(elem, static_cast<uint64_t>(element_count(dims)));
  std::string_view data = bytes.substr(start + length);
  if (data.size() != need)
    return malformed(path, "its shape needs " + std::to_string(need) + " bytes, and there are " +
                               std::to_string(data.size()));
  if (fortran && dims.size() > 1) return in_c_order(elem, dims, data.data(), path);
  return Tensor::borrow(elem, dims, data.data(), file.owner());
}

Result<PendingFile> pending_npy(const std::string& path, const regie_tensor& tensor) {
  const char* descr = nullptr;
  for (const Descr& d : kDescrs)
    if (d.elem == tensor.elem) descr = d.text;
  std::vector<float> widened;
  const void* data = tensor.data;
  uint64_t bytes = tensor.bytes;
  if (tensor.elem == REGIE_BF16) {
    descr = "<f4";
    const auto* from = static_cast<const uint16_t*>(tensor.data);
    for (uint64_t i = 0; i < tensor.bytes / 2; ++i) {
      uint32_t word = static_cast<uint32_t>(from[i]) << 16;
      float f;
      std::memcpy(&f, &word, 4);
      widened.push_back(f);
    }
    data = widened.data();
    bytes = widened.size() * 4;
  }
  if (!descr) return unsupported("numpy has no type for " + std::string(elem_name(tensor.elem)), path);
  std::string shape;
  for (int32_t i = 0; i < tensor.rank; ++i) shape += std::to_string(tensor.dims[i]) + ",";
  std::string header =
      "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string front("\x93NUMPY\x01\x00", 8);
  front += static_cast<char>(header.size() & 0xff);
  front += static_cast<char>(header.size() >> 8);
  front += header;
  return PendingFile::write(path, [&](const AppendBytes& append) -> Status {
    REGIE_TRY(append(front.data(), front.size()));
    return append(data, bytes);
  });
}

Status write_npy(const std::string& path, const regie_tensor& tensor) {
  REGIE_ASSIGN(PendingFile file, pending_npy(path, tensor));
  return file.put_in_place();
}

}  // namespace regie::cli
