// SPDX-License-Identifier: Apache-2.0
// Memory of CUDA graphs: allocation nodes take it when the graph is launched, and launches have no hook. A node that could
// never fit is refused when it is added; what graphs reserve is read when one is instantiated and at the limit.
// (Graphs that torch captures allocate from its own pool, which is charged like any other.)
#include "hook.h"
#include "pools.h"

namespace guard {
namespace {

bool allocates_on_device(const AllocationNode* node) {
  return node && node->pool.location.type == k_location_device;
}

template <class Ask>
Result add_node(const Call& call, const AllocationNode* node, Ask ask) {
  if (!call.all() || !allocates_on_device(node)) return ask();
  State& all = *call.all();
  Device ordinal = node->pool.location.id;
  DeviceState* device = device_state(all, ordinal);
  if (!device) return ask();
  store(device->graphs_seen, 1u);
  // Taken for the time of the call: it fits now, or once others of this process are gone.
  Charge charge(all, ordinal, CUFIT_RING_KIND_GRAPH, node->bytes, call.caller());
  charge.allow_trim(false);
  if (!charge.take(round_up(node->bytes, k_page))) return k_out_of_memory;
  Result result = ask();
  charge.give_back();
  if (result == k_ok)
    charge.note(node->address);
  else
    charge.driver_refused(result);
  return result;
}

template <class Ask>
Result instantiate(const Call& call, Ask ask) {
  Result result = ask();
  Device device = current_device();
  if (!call.all() || device < 0) return result;
  refresh_graphs(*call.all(), device);
  return result;
}

const AllocationNode* allocation_of(const GraphNode* node) {
  return node && node->type == k_node_allocation ? &node->allocation : nullptr;
}

}  // namespace
}  // namespace guard

using namespace guard;

GUARD_EXPORT Result cuGraphAddMemAllocNode(Handle* out, Handle graph, const Handle* before,
                                           size_t count, AllocationNode* node) {
  GUARD_BEGIN(cuGraphAddMemAllocNode,
              Result(Handle*, Handle, const Handle*, size_t, AllocationNode*));
  return add_node(call, node, [=] { return real(out, graph, before, count, node); });
}

GUARD_EXPORT Result cuGraphAddNode(Handle* out, Handle graph, const Handle* before, size_t count,
                                   GraphNode* node) {
  GUARD_BEGIN(cuGraphAddNode, Result(Handle*, Handle, const Handle*, size_t, GraphNode*));
  return add_node(call, allocation_of(node), [=] { return real(out, graph, before, count, node); });
}

GUARD_EXPORT Result cuGraphAddNode_v2(Handle* out, Handle graph, const Handle* before,
                                      const void* edges, size_t count, GraphNode* node) {
  GUARD_BEGIN(cuGraphAddNode_v2,
              Result(Handle*, Handle, const Handle*, const void*, size_t, GraphNode*));
  return add_node(call, allocation_of(node),
                  [=] { return real(out, graph, before, edges, count, node); });
}

#define GUARD_INSTANTIATE_LOG(name)                                                            \
  GUARD_EXPORT Result name(Handle* out, Handle graph, Handle* node, char* log, size_t bytes) { \
    GUARD_BEGIN(name, Result(Handle*, Handle, Handle*, char*, size_t));                        \
    return instantiate(call, [=] { return real(out, graph, node, log, bytes); });              \
  }
GUARD_INSTANTIATE_LOG(cuGraphInstantiate)
GUARD_INSTANTIATE_LOG(cuGraphInstantiate_v2)

GUARD_EXPORT Result cuGraphInstantiateWithFlags(Handle* out, Handle graph,
                                                unsigned long long flags) {
  GUARD_BEGIN(cuGraphInstantiateWithFlags, Result(Handle*, Handle, unsigned long long));
  return instantiate(call, [=] { return real(out, graph, flags); });
}

#define GUARD_INSTANTIATE_PARAMETERS(name)                                  \
  GUARD_EXPORT Result name(Handle* out, Handle graph, void* parameters) {   \
    GUARD_BEGIN(name, Result(Handle*, Handle, void*));                      \
    return instantiate(call, [=] { return real(out, graph, parameters); }); \
  }
GUARD_INSTANTIATE_PARAMETERS(cuGraphInstantiateWithParams)
GUARD_INSTANTIATE_PARAMETERS(cuGraphInstantiateWithParams_ptsz)

GUARD_EXPORT Result cuDeviceGraphMemTrim(Device device) {
  GUARD_BEGIN(cuDeviceGraphMemTrim, Result(Device));
  Result result = real(device);
  if (call.all() && result == k_ok) refresh_graphs(*call.all(), device);
  return result;
}

// The two ends of a capture. A stream that was not being captured says so (CUDA_ERROR_ILLEGAL_STATE).
namespace guard {
namespace {

constexpr Result k_illegal_state = 401;

template <class Ask>
Result begin_capture(const Call& call, Ask ask) {
  Result result = ask();
  if (call.all() && result == k_ok) fetch_add(call.all()->capturing, 1u);
  return result;
}

template <class Ask>
Result end_capture(const Call& call, Ask ask) {
  Result result = ask();
  if (!call.all() || result == k_illegal_state) return result;
  uint32_t& count = call.all()->capturing;
  for (uint32_t now = load(count); now > 0 && !compare_set(count, now, now - 1);) now = load(count);
  return result;
}

}  // namespace
}  // namespace guard

GUARD_EXPORT Result cuStreamBeginCapture(Handle stream) {
  GUARD_BEGIN(cuStreamBeginCapture, Result(Handle));
  return begin_capture(call, [=] { return real(stream); });
}

GUARD_EXPORT Result cuStreamBeginCapture_v2(Handle stream, int mode) {
  GUARD_BEGIN(cuStreamBeginCapture_v2, Result(Handle, int));
  return begin_capture(call, [=] { return real(stream, mode); });
}

GUARD_EXPORT Result cuStreamBeginCapture_v2_ptsz(Handle stream, int mode) {
  GUARD_BEGIN(cuStreamBeginCapture_v2_ptsz, Result(Handle, int));
  return begin_capture(call, [=] { return real(stream, mode); });
}

GUARD_EXPORT Result cuStreamBeginCaptureToGraph(Handle stream, Handle graph, const void* nodes,
                                                const void* edges, size_t count, int mode) {
  GUARD_BEGIN(cuStreamBeginCaptureToGraph,
              Result(Handle, Handle, const void*, const void*, size_t, int));
  return begin_capture(call, [=] { return real(stream, graph, nodes, edges, count, mode); });
}

GUARD_EXPORT Result cuStreamBeginCaptureToGraph_ptsz(Handle stream, Handle graph, const void* nodes,
                                                     const void* edges, size_t count, int mode) {
  GUARD_BEGIN(cuStreamBeginCaptureToGraph_ptsz,
              Result(Handle, Handle, const void*, const void*, size_t, int));
  return begin_capture(call, [=] { return real(stream, graph, nodes, edges, count, mode); });
}

GUARD_EXPORT Result cuStreamEndCapture(Handle stream, Handle* graph) {
  GUARD_BEGIN(cuStreamEndCapture, Result(Handle, Handle*));
  return end_capture(call, [=] { return real(stream, graph); });
}

GUARD_EXPORT Result cuStreamEndCapture_ptsz(Handle stream, Handle* graph) {
  GUARD_BEGIN(cuStreamEndCapture_ptsz, Result(Handle, Handle*));
  return end_capture(call, [=] { return real(stream, graph); });
}
