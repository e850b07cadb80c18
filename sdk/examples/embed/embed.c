/* The embedding API from C: compiles (or loads) a model, runs it once on zeros, prints its outputs.
 *
 *   embed model.onnx|model.rgm [target]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regie/api/regie.h"

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, regie_last_error());
  return 2;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: embed model.onnx|model.rgm [target]\n");
    return 2;
  }
  regie_option option = {"target", argc > 2 ? argv[2] : "host_cpu"};
  size_t length = strlen(argv[1]);
  int offline = length > 4 && strcmp(argv[1] + length - 4, ".rgm") == 0;
  regie_model* model = NULL;
  if (offline ? regie_model_load(argv[1], &model) : regie_compile_file(argv[1], &option, 1, &model))
    return fail("model");

  regie_session* session = NULL;
  regie_context* context = NULL;
  if (regie_session_create(model, NULL, 0, &session)) return fail("session");
  if (regie_context_acquire(session, &context)) return fail("context");

  size_t inputs = regie_model_input_count(model), outputs = regie_model_output_count(model);
  regie_tensor* in = calloc(inputs + 1, sizeof *in);
  regie_tensor* out = calloc(outputs + 1, sizeof *out);
  int64_t* dims = calloc(inputs * 16 + 1, sizeof *dims);
  int code = 0;
  for (size_t i = 0; i < inputs && !code; ++i) {
    regie_port port = regie_model_input(model, i);
    int64_t count = 1;
    if (port.rank > 16 || port.elem != REGIE_F32) {
      fprintf(stderr, "input %s: this example fills f32 tensors of up to 16 dimensions\n", port.name);
      code = 2;
      break;
    }
    for (int32_t d = 0; d < port.rank; ++d) {
      dims[i * 16 + (size_t)d] = port.reference_dims[d]; /* a symbolic dimension: any size in its range */
      count *= dims[i * 16 + (size_t)d];
    }
    in[i].elem = port.elem;
    in[i].rank = port.rank;
    in[i].dims = dims + i * 16;
    in[i].bytes = (uint64_t)count * sizeof(float);
    in[i].data = calloc((size_t)count + 1, sizeof(float));
  }
  /* Outputs with data NULL stay in the context's memory until its next run. */
  if (!code && regie_run(context, in, inputs, out, outputs)) code = fail("run");
  for (size_t i = 0; i < outputs && !code; ++i)
    printf("%s: %d dimensions, %llu bytes\n", regie_model_output(model, i).name, (int)out[i].rank,
           (unsigned long long)out[i].bytes);

  for (size_t i = 0; i < inputs; ++i) free(in[i].data);
  free(in);
  free(out);
  free(dims);
  regie_context_release(context);
  regie_session_release(session);
  regie_model_release(model);
  return code;
}
