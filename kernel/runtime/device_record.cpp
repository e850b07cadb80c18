// The records of devices that tell more of a run than when each launch began and ended
// (regie/c/device_trace.h).
#include <algorithm>
#include <map>

#include "runtime/run_state.h"

namespace regie {

void RunState::record(bool on) {
  tags_ = 0;
  records_.clear();
  for (const auto& s : streams_)
    if (const regie_device_trace_table* trace = core_->devices[s->device]->trace())
      trace->record(s->stream.get(), on ? 1 : 0);
}

// Copies get their times from here, as no stamps were asked for.
Status RunState::collect_records() {
  std::map<uint64_t, TaskTime*> by_tag;
  for (TaskTime& t : times_)
    if (t.tag) by_tag.emplace(t.tag, &t);
  for (const auto& s : streams_) {
    const Device& device = *core_->devices[s->device];
    if (!device.trace()) continue;
    regie_trace trace{};
    REGIE_TRY(device.call([&] { return device.trace()->collect(s->stream.get(), &trace); }));
    if (trace.struct_size < sizeof trace)
      return bad_plugin(device.title() + " gave a record of another size");
    DeviceRecord& r = records_.emplace_back();
    r.device = s->device;
    r.stream = s->number;
    for (uint32_t i = 0; i < trace.lane_count; ++i) {
      const regie_trace_lane& lane = trace.lanes[i];
      r.lanes.push_back({std::string(lane.name.data, lane.name.size), lane.parent, lane.is_engine != 0});
    }
    r.tasks.assign(trace.tasks, trace.tasks + trace.task_count);
    for (uint64_t i = 0; i < trace.slice_count; ++i) {
      const regie_trace_slice& slice = trace.slices[i];
      if (slice.lane >= trace.lane_count)
        return bad_plugin(device.title() + " recorded work on a lane that it has not");
      r.slices.push_back({slice.tag, slice.begin_ns, slice.end_ns, slice.lane,
                          std::string(slice.name.data, slice.name.size)});
    }
    r.waits.assign(trace.waits, trace.waits + trace.wait_count);
    // Every stream tells all of them: they are the device's.
    if (std::none_of(records_.begin(), records_.end() - 1,
                     [&](const DeviceRecord& other) { return other.device == r.device; }))
      r.host.assign(trace.host, trace.host + trace.host_count);
    const int64_t offset = clock_offsets_[s->device];
    for (const regie_trace_task& t : r.tasks) {
      if (t.lane != REGIE_NONE && t.lane >= trace.lane_count)
        return bad_plugin(device.title() + " recorded a task on a lane that it has not");
      const auto of = by_tag.find(t.tag);
      if (of == by_tag.end()) continue;
      of->second->begin_ns = t.begin_ns + static_cast<uint64_t>(offset);
      of->second->end_ns = t.end_ns + static_cast<uint64_t>(offset);
    }
  }
  return {};
}

}  // namespace regie
