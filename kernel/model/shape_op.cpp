#include "model/shape_op.h"

#include <algorithm>

#include "base/names.h"
#include "regie/op_blob.hpp"

namespace regie {

struct ShapeOp::Impl {
  sdk::OpBlob blob;
};

Result<std::string> ShapeOp::write(std::string_view op, std::span<const regie_attr> attrs) {
  try {
    sdk::BlobWriter out;
    sdk::write_op(out, op, attrs.data(), static_cast<uint32_t>(attrs.size()));
    return out.take();
  } catch (const sdk::Failure& f) {
    return Status::error(f.code, f.message);
  }
}

Result<ShapeOp> ShapeOp::read(std::string_view bytes) {
  try {
    sdk::BlobReader in(bytes.data(), bytes.size(), "the operator that tells its shape");
    auto impl = std::make_shared<Impl>(Impl{sdk::read_op(in)});
    in.finish();
    const std::vector<regie_attr>& attrs = impl->blob.attrs();
    for (size_t i = 1; i < attrs.size(); ++i)
      if (sdk::sv(attrs[i - 1].name) >= sdk::sv(attrs[i].name)) in.corrupt("its attributes are not in order");
    ShapeOp read;
    read.impl_ = std::move(impl);
    return read;
  } catch (const sdk::Failure& f) {
    return Status::error(f.code, f.message);
  }
}

std::string_view ShapeOp::op() const { return impl_->blob.op(); }
std::span<const regie_attr> ShapeOp::attrs() const { return impl_->blob.attrs(); }

}  // namespace regie
