/* SPDX-License-Identifier: Apache-2.0
 * Metrics on their way to prometheus-cpp (src/host/serve/prometheus_text.h): that library is in a shared object with a C++
 * library of its own, so only C passes between. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* name;
  const char* value; /* UTF-8 */
} cufit_metric_label;

typedef struct {
  const cufit_metric_label* labels;
  size_t label_count;
  double value;
} cufit_metric_point;

typedef struct {
  const char* name;
  const char* help;
  int is_counter; /* else a gauge */
  const cufit_metric_point* points;
  size_t point_count;
} cufit_metric_family;

/* Gives the page to `put`, in one piece or more. 0: it could not be made (no memory). */
typedef int (*cufit_metric_page_function)(const cufit_metric_family* families, size_t count,
                                          void (*put)(const char* bytes, size_t size, void* place), void* place);

/* The one function of the shared object. */
int cufit_metric_page(const cufit_metric_family* families, size_t count,
                      void (*put)(const char* bytes, size_t size, void* place), void* place);

#ifdef __cplusplus
}
#endif
