/* SPDX-License-Identifier: MIT
 * The functions of the fake run-time compiler: ROW(result, function, "symbol", (arguments)). The compiler returns 0 for
 * success. No include guard on purpose.
 */
/* clang-format off */
ROW(int, nvrtc_version, "nvrtcVersion", (int *major, int *minor))
ROW(const char *, nvrtc_error_string, "nvrtcGetErrorString", (int code))
ROW(int, nvrtc_create, "nvrtcCreateProgram",
    (fake_nvrtc_program **out, const char *source, const char *name, int header_count, const char *const *headers,
     const char *const *header_names))
ROW(int, nvrtc_destroy, "nvrtcDestroyProgram", (fake_nvrtc_program **program))
ROW(int, nvrtc_compile, "nvrtcCompileProgram",
    (fake_nvrtc_program *program, int option_count, const char *const *options))
ROW(int, nvrtc_image_bytes, "nvrtcGetPTXSize", (fake_nvrtc_program *program, size_t *bytes))
ROW(int, nvrtc_image, "nvrtcGetPTX", (fake_nvrtc_program *program, char *out))
ROW(int, nvrtc_cubin_bytes, "nvrtcGetCUBINSize", (fake_nvrtc_program *program, size_t *bytes))
ROW(int, nvrtc_cubin, "nvrtcGetCUBIN", (fake_nvrtc_program *program, char *out))
ROW(int, nvrtc_log_bytes, "nvrtcGetProgramLogSize", (fake_nvrtc_program *program, size_t *bytes))
ROW(int, nvrtc_log, "nvrtcGetProgramLog", (fake_nvrtc_program *program, char *out))
/* For tests: programs not destroyed, and compilations so far. */
ROW(size_t, nvrtc_live, "rondo_fake_nvrtc_live", (void))
ROW(size_t, nvrtc_compilations, "rondo_fake_nvrtc_compilations", (void))
/* clang-format on */
