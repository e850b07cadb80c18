#include "reader.h"

#include <climits>
#include <string>
#include <vector>

#include <google/protobuf/io/coded_stream.h>

#include "regie/plugin.hpp"

namespace regie::onnx {

namespace {

enum class Message { kModel, kGraph, kNode, kAttribute, kTensor, kSparseTensor, kFunction, kOther };

const char* name_of(Message kind) {
  switch (kind) {
    case Message::kModel:
      return "model";
    case Message::kGraph:
      return "graph";
    case Message::kNode:
      return "node";
    case Message::kAttribute:
      return "attribute";
    case Message::kTensor:
      return "tensor";
    case Message::kSparseTensor:
      return "sparse tensor";
    case Message::kFunction:
      return "function";
    case Message::kOther:
      break;
  }
  return "message";
}

enum class Action { kDrop, kCopy, kEnter, kPayload };

struct Field {
  Action action = Action::kCopy;
  Message message = Message::kOther;
};

// What to do with field `number` of a message: enter the ones that may hold tensors, drop what is not in our
// schema.
Field field_of(Message kind, uint64_t number) {
  constexpr Field drop{Action::kDrop, Message::kOther}, copy{};
  auto enter = [](Message m) { return Field{Action::kEnter, m}; };
  switch (kind) {
    case Message::kModel:
      if (number == 7) return enter(Message::kGraph);
      if (number == 25) return enter(Message::kFunction);
      return number <= 3 || number == 8 ? copy : drop;
    case Message::kGraph:
      if (number == 1) return enter(Message::kNode);
      if (number == 5) return enter(Message::kTensor);
      if (number == 15) return enter(Message::kSparseTensor);
      return number == 2 || number == 11 || number == 12 ? copy : drop;
    case Message::kNode:
      if (number == 5) return enter(Message::kAttribute);
      return number <= 4 || number == 7 || number == 8 ? copy : drop;
    case Message::kAttribute:
      if (number == 5 || number == 10) return enter(Message::kTensor);
      if (number == 6 || number == 11) return enter(Message::kGraph);
      if (number == 22 || number == 23) return enter(Message::kSparseTensor);
      return number <= 9 || number == 20 || number == 21 ? copy : drop;
    case Message::kTensor:
      if (number == 9) return {Action::kPayload, Message::kOther};
      return number <= 14 && number != 12 ? copy : drop;
    case Message::kSparseTensor:
      if (number == 1 || number == 2) return enter(Message::kTensor);
      return number == 3 ? copy : drop;
    case Message::kFunction:
      if (number == 7) return enter(Message::kNode);
      if (number == 11) return enter(Message::kAttribute);
      return number != 8 && number != 12 && number <= 13 ? copy : drop;
    case Message::kOther:
      break;
  }
  return drop;
}

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One open message of the walk.
struct Frame {
  Message kind;
  uint64_t end;      // where it ends in the file
  size_t length_at;  // where its length stands in the skeleton
};

class Walk {
 public:
  Walk(const void* data, uint64_t size) : bytes_(static_cast<const uint8_t*>(data)), size_(size) {}

  std::string skeleton() {
    stack_.push_back({Message::kModel, size_, 0});
    while (!stack_.empty()) {
      if (at_ == stack_.back().end) {
        close();
      } else {
        field();
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void broken(uint64_t at, const std::string& why) const {
    throw sdk::Failure(REGIE_INVALID_MODEL, "the file is truncated or not an ONNX model: " + why + " (in a " +
                                                name_of(stack_.back().kind) + " at byte " +
                                                std::to_string(at) + " of " + std::to_string(size_) + ")");
  }

  uint64_t varint() {
    const uint64_t start = at_, end = stack_.back().end;
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ >= end) broken(start, "a number breaks off");
      uint8_t byte = bytes_[at_++];
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    broken(start, "a number has more than 10 bytes");
  }

  void put_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  void put_field(uint64_t number, uint64_t value) {
    put_varint(number << 3 | kVarint);
    put_varint(value);
  }

  void field() {
    const uint64_t start = at_, end = stack_.back().end;
    const uint64_t tag = varint();
    const uint64_t number = tag >> 3;
    const auto type = static_cast<uint32_t>(tag & 7);
    if (number == 0 || number > (1u << 29) - 1)
      broken(start, "field number " + std::to_string(number) + " cannot be");
    const Field what = field_of(stack_.back().kind, number);
    uint64_t length = 0;
    switch (type) {
      case kVarint:
        varint();
        break;
      case kFixed64:
        length = 8;
        break;
      case kFixed32:
        length = 4;
        break;
      case kBytes:
        length = varint();
        break;
      default:
        broken(start, "field " + std::to_string(number) + " has wire type " + std::to_string(type));
    }
    if (length > end - at_)
      broken(start, "field " + std::to_string(number) + " needs " + std::to_string(length) + " bytes, " +
                        std::to_string(end - at_) + " are left");
    if ((what.action == Action::kEnter || what.action == Action::kPayload) && type != kBytes)
      broken(start,
             "field " + std::to_string(number) + " has wire type " + std::to_string(type) + " instead of 2");
    if (what.action == Action::kEnter) {
      open(what.message, tag, length);
      return;
    }
    if (what.action == Action::kPayload) {
      put_field(wire::Tensor::kRawOffsetFieldNumber, at_);
      put_field(wire::Tensor::kRawSizeFieldNumber, length);
    } else if (what.action == Action::kCopy) {
      out_.append(reinterpret_cast<const char*>(bytes_ + start), static_cast<size_t>(at_ + length - start));
    }
    at_ += length;
  }

  // The skeleton's length is not known yet: five bytes are kept for it, which the encoding allows.
  void open(Message kind, uint64_t tag, uint64_t length) {
    if (kind == Message::kGraph && ++graphs_ > kMaxDepth + 1)
      throw sdk::Failure(REGIE_UNSUPPORTED, "subgraphs nest deeper than " + std::to_string(kMaxDepth));
    put_varint(tag);
    stack_.push_back({kind, at_ + length, out_.size()});
    out_.append(5, '\0');
  }

  void close() {
    Frame frame = stack_.back();
    stack_.pop_back();
    if (frame.kind == Message::kGraph) --graphs_;
    if (out_.size() > INT_MAX)
      throw sdk::Failure(
          REGIE_UNSUPPORTED,
          "the model's structure (without raw weights) takes more than 2 GiB; store weights as raw or "
          "external data");
    if (stack_.empty()) return;
    uint64_t length = out_.size() - frame.length_at - 5;
    for (int i = 0; i < 5; ++i, length >>= 7)
      out_[frame.length_at + static_cast<size_t>(i)] =
          static_cast<char>((length & 0x7f) | (i < 4 ? 0x80 : 0));
  }

  const uint8_t* bytes_;
  uint64_t size_, at_ = 0;
  int graphs_ = 0;
  std::vector<Frame> stack_;
  std::string out_;
};

}  // namespace

void read_model(const void* data, uint64_t size, wire::Model* model) {
  if (size == 0) throw sdk::Failure(REGIE_INVALID_MODEL, "the file is empty");
  std::string skeleton = Walk(data, size).skeleton();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(skeleton.data()),
                                            static_cast<int>(skeleton.size()));
  in.SetTotalBytesLimit(INT_MAX);
  in.SetRecursionLimit(4 * kMaxDepth + 20);  // graph, node, attribute a level
  if (!model->ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
    throw sdk::Failure(REGIE_INVALID_MODEL, "the file is not an ONNX model: a field has a broken encoding");
}

uint32_t probe_model(std::string_view path, const void* head, uint64_t head_size, uint64_t file_size) {
  const bool named = path.size() >= 5 && path.substr(path.size() - 5) == ".onnx";
  const auto* bytes = static_cast<const uint8_t*>(head);
  uint64_t at = 0;
  auto varint = [&](uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && at < head_size; shift += 7) {
      uint8_t byte = bytes[at++];
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return true;
    }
    return false;
  };
  // The known top-level fields with their wire types, as far as the head reaches.
  int fields = 0;
  while (at < head_size) {
    uint64_t tag = 0, value = 0;
    if (!varint(&tag)) break;
    const uint64_t number = tag >> 3, type = tag & 7;
    const bool numeric = number == 1 || number == 5;
    const bool text = number == 2 || number == 3 || number == 4 || number == 6 || number == 7 ||
                      number == 8 || number == 14 || number == 20 || number == 25 || number == 26;
    if (!(numeric && type == kVarint) && !(text && type == kBytes)) return 0;
    if (!varint(&value)) break;
    if (number == 1 && (value == 0 || value > 1000)) return 0;
    ++fields;
    if (type != kBytes) continue;
    if (value >= head_size - at) {
      // It goes beyond the head: nothing but a truncated file would end before it.
      if (value > file_size - at && !named) return 0;
      break;
    }
    at += value;
  }
  if (fields == 0) return 0;
  return named ? 95 : fields > 1 ? 70 : 30;
}

}  // namespace regie::onnx
