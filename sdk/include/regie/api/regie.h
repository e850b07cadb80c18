/* The embedding API in C: compile, load, query, run. `regie compile` and `regie run` are built on it alone.
 *
 * regie_compile_* and regie_model_explain are in libregie-compiler; everything else is in libregie-runtime,
 * which needs no frontend and no pass. Every function that can fail returns a regie_status; the words are in
 * regie_last_error() of the same thread. Objects are freed with their *_release, in any order: what still
 * needs them keeps them alive. Models and sessions may be used from any number of threads; a context from one
 * at a time. Strings given out live as long as the object they came from. */
#ifndef REGIE_API_REGIE_H
#define REGIE_API_REGIE_H

#include <stddef.h>
#include <stdint.h>

#include "regie/c/log.h"
#include "regie/c/status.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REGIE_API __attribute__((visibility("default")))
#else
#define REGIE_API
#endif

typedef struct regie_model regie_model;     /* immutable: tasks, kernels, weights */
typedef struct regie_session regie_session; /* a model made ready on its devices */
typedef struct regie_context regie_context; /* one run at a time */

/* Options are keys and values; an unknown key is an error that names the nearest known one. */
typedef struct regie_option {
  const char* key;
  const char* value;
} regie_option;

/* Name, type and dimensions of an input or output; a dimension < 0 is symbolic: see `dims_text`, e.g.
 * "[N,1,8,8]". Rank -1, "[*]": an output whose rank each run tells. */
typedef struct regie_port {
  const char* name;
  regie_elem elem;
  int32_t rank;
  const int64_t* dims;
  const char* dims_text;
  const int64_t* reference_dims; /* the sizes that the model was planned for: no dimension is symbolic here */
  const regie_tensor*
      default_value; /* of an input that a run need not give; NULL: it must. The model's own */
} regie_port;

REGIE_API const char* regie_version(void);
/* Code, place and words of the calling thread's last failure: "model.onnx: node 'conv1': ...". Never NULL. */
REGIE_API const char* regie_last_error(void);
REGIE_API void regie_set_log_level(regie_log_level least);

/* Begins to open the libraries that models of a device need, the plug-in `device` ("host_cpu") and what it
 * brings along, on a thread, and returns: what finds them open later starts some milliseconds sooner. For
 * programs that will load a model and have something else to do first, such as reading its inputs. Nothing
 * depends on it: what cannot be opened is told by the function that needs it, in the same words. plugin_path:
 * as the option plugin-path of the session; NULL: none. Set variables of the environment before: libraries
 * read them when they are opened, on that thread. The end of the process, and fork(), wait for the thread. */
REGIE_API regie_status regie_open_ahead(const char* device, const char* plugin_path);

/* Compiles a framework's model file or a .rg graph. Options: target, pipeline, shape ("x=16,1,8,8", may be
 * repeated), threads, dump (folder), optimise (1 or 0), verify (1 or 0: check graph and plan after each
 * stage), plugin-path, set ("key=value", may be repeated: an option of a pass, "pass.key=value"), cache (off,
 * read or on: a model that was compiled before from the same in every respect is not compiled again; without
 * it as the variable REGIE_CACHE says, else on if cache-dir or REGIE_CACHE_DIR names a folder), cache-dir,
 * cache-size ("4G"), fold-defaults (1: an input that the model has a value for is a constant, and no input),
 * shapes ("dynamic"; "buckets:x.0=1|4|16,x.2=320|640": a plan for each combination of these sizes, each
 * compiled here; "max:x.0=16"), padding (allow: a request is padded up to the next plan's
 * sizes, refused here if an operator does not allow it; refuse; force) and overflow (above the largest size:
 * error, dynamic or resize; docs/shapes.md), memory-limit ("64MiB", of all arenas together), typical
 * ("x=16,?,224,224", may be repeated: sizes that open axes usually have; the plan is made for them, and
 * others run as well), explain (1: the model, and the file that it is saved to, keeps every detail for
 * regie_model_explain, where without it keeps the first ones of each kind; it never comes from the cache). */
REGIE_API regie_status regie_compile_file(const char* path, const regie_option* options, size_t option_count,
                                          regie_model** model);
/* The same from bytes; `name` stands in messages, external files are looked for beside it. */
REGIE_API regie_status regie_compile_bytes(const void* data, size_t size, const char* name,
                                           const regie_option* options, size_t option_count,
                                           regie_model** model);

/* JSON: how often this process compiled, and how often it need not, since it began: `compiles`,
 * `process_hits`, `folder_hits`, `stored`, `not_stored`, `kernels_compiled`, `kernels_known`. Valid until the
 * thread's next call. */
REGIE_API const char* regie_cache_statistics(void);

/* Maps the file. Large weights are checked on a thread of their own, beside what makes the model ready: the
 * first run of a context, and regie_model_save, wait for it and give REGIE_CORRUPT if they are damaged. */
REGIE_API regie_status regie_model_load(const char* path, regie_model** model);
REGIE_API regie_status regie_model_save(const regie_model* model, const char* path);
REGIE_API void regie_model_release(regie_model* model);
REGIE_API size_t regie_model_input_count(const regie_model* model);
REGIE_API size_t regie_model_output_count(const regie_model* model);
REGIE_API regie_port regie_model_input(const regie_model* model, size_t index);
REGIE_API regie_port regie_model_output(const regie_model* model, size_t index);
/* JSON: what the compile decided (stages, operators, fusions, engines, memory, tasks) and figures of the
 * model. */
REGIE_API const char* regie_model_report(const regie_model* model);

/* Why the model became what it is, as `regie explain` tells it: what was fused, and what nearly was and the
 * node in the way; which engine has each node and why not the others. Options: node (the name of a node, an
 * output or a tensor in the framework's model) or rule (of a fusion) ask for one of them, without either the
 * answer is an overview; plan ("x.0=4": of a model with several plans, else that of the greatest sizes); all
 * (1: nothing is left out for brevity); json (1: an object in place of text). NOT_FOUND with near names.
 * `text` is valid until the thread's next call. In libregie-compiler. */
REGIE_API regie_status regie_model_explain(const regie_model* model, const regie_option* options,
                                           size_t option_count, const char** text);

/* Options: threads, timeout-ms, plugin-path, device-set ("npu.mode=sink", may be repeated: a parameter of one
 * of the model's devices instead of what its target says), shape-log (a file that gets a line of JSON for
 * each run: the dimensions of its inputs; else the variable REGIE_SHAPE_LOG names it). With fixed dimensions
 * the arena of the first context is made here, in memory that the process then has, run or not. */
REGIE_API regie_status regie_session_create(const regie_model* model, const regie_option* options,
                                            size_t option_count, regie_session** session);
REGIE_API void regie_session_release(regie_session* session);
REGIE_API regie_status regie_context_acquire(regie_session* session, regie_context** context);
REGIE_API void regie_context_release(regie_context* context); /* back to the session's pool */

/* `inputs` in the model's order; one with a default and elem REGIE_ELEM_UNKNOWN is not given. `outputs`:
 * elements with data NULL are set to memory of the context, valid until its next run or release; with data
 * set, `bytes` is the room there is, and dims, rank and bytes are set to what was written. After
 * REGIE_TIMEOUT the device may still use inputs and outputs until the context's next run or release. */
REGIE_API regie_status regie_run(regie_context* context, const regie_tensor* inputs, size_t input_count,
                                 regie_tensor* outputs, size_t output_count);
/* JSON: runs, shapes prepared, why the last preparation was needed. Valid until the context's next call. */
REGIE_API const char* regie_context_statistics(regie_context* context);

/* JSON: of all contexts of the session, how often kernels were made ready for a shape that was new to one
 * (`shapes_prepared`, `late_prepared`), and of a model with several plans how its runs came to theirs.
 * Nothing is ever compiled by a run. Valid until the thread's next call. */
REGIE_API const char* regie_session_statistics(regie_session* session);

/* ---- Looking closer ---- */

/* JSON: what a run issues and where everything lies: `programs` (0 is the main one) of `tasks` in issue
 * order, each with its name, operator, the framework operators that it came from, kernel, engine, device,
 * stream and what it waits for; `kernels`; `threads` that it was compiled for; and `buffers` with their
 * lifetimes in steps, sizes as reserved and offsets. */
REGIE_API const char* regie_model_plan(const regie_model* model);

/* When one task of a run was issued and ran: nanoseconds of the host's monotonic clock, beside which the
 * clocks of devices are set at the start of the run. */
typedef struct regie_task_time {
  uint32_t program, task;       /* in regie_model_plan */
  uint64_t wait_ns;             /* the host began to wait for tasks that had to end before */
  uint64_t issue_ns, issued_ns; /* the host handed it to the device */
  uint64_t begin_ns, end_ns;    /* it ran; 0: nobody tells */
} regie_task_time;

/* On: the context's later runs are timed, task by task. Off, which is the default, costs nothing. */
REGIE_API regie_status regie_context_set_profiling(regie_context* context, uint32_t on);
/* The tasks of the last run that was timed, in the order in which they were issued; gives their number. Valid
 * until the context's next run. */
REGIE_API size_t regie_context_task_times(regie_context* context, const regie_task_time** times);
/* JSON: what devices with a clock of their own (simulators) tell of that run, in nanoseconds of that clock: a
 * list of `streams`, each with its `device` and `stream`, the device's `lanes` (engines and their parts), and
 *   tasks   `time`: the index in regie_context_task_times; `issue`, `issued`: the host handed it over;
 * `free`: what was before it had ended; `ready`: the stream could start it; `event`: what it waited for had
 *           come; `begin`, `end`; `run`, `ran`: the engine `lane` computed; `bytes`, `far_bytes` (of the
 * memory behind the caches), `flops` slices  what a part of an engine did waits   the host waited for this
 * stream Valid until the context's next run. */
REGIE_API const char* regie_context_device_times(regie_context* context);

/* Timed runs of a model and what they add up to: all of the above put together. From one thread at a time. */
typedef struct regie_profile regie_profile;
REGIE_API regie_status regie_profile_create(const regie_model* model, regie_profile** profile);
REGIE_API void regie_profile_release(regie_profile* profile);
/* As regie_run, on a context of the profile's model, timed and kept if it succeeds; the context's
 * profiling is off after it. Runs before, by
 * regie_run, warm up. */
REGIE_API regie_status regie_profile_run(regie_profile* profile, regie_context* context,
                                         const regie_tensor* inputs, size_t input_count,
                                         regie_tensor* outputs, size_t output_count);
/* JSON, that of `regie profile --json` (docs/profile.md): times of the runs, by operator, by kernel and of
 * each of the `tasks`. Valid until the profile's next call of it. */
REGIE_API const char* regie_profile_summary(regie_profile* profile);
/* JSON: a trace in Chrome's event format. Valid until the profile's next call of it. */
REGIE_API const char* regie_profile_trace(regie_profile* profile);

/* Called as a compile goes on, on the thread that compiles: what is being done, `done` of `total` (0: not
 * known). Process wide; NULL: nobody is told. */
typedef void (*regie_progress)(void* context, const char* what, uint64_t done, uint64_t total);
REGIE_API void regie_set_progress(regie_progress function, void* context);

#ifdef __cplusplus
}
#endif
#endif
