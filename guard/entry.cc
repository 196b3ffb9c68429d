// SPDX-License-Identifier: Apache-2.0
// dlsym and dlvsym. The real ones look at their return address (RTLD_NEXT, the namespace), so they are jumped to with
// stack and registers as the caller left them; the guard's question comes before, and only for names that it
// stands before is the answer its own (resolver.cc).
//
// The questions return { nonzero: this is the answer, the answer } in two registers (both ABIs return 16 bytes so).
#include "resolver.h"

#if defined(__x86_64__)

// At entry rsp is 8 below a multiple of 16; three pushes align it for the call. arguments: rdi, rsi, rdx.
#define GUARD_ENTRY(name, question, caller_register) \
  asm(".text\n"                                      \
      ".globl " name                                 \
      "\n"                                           \
      ".type " name                                  \
      ", @function\n"                                \
      ".p2align 4\n" name                            \
      ":\n"                                          \
      ".cfi_startproc\n"                             \
      "  endbr64\n"                                  \
      "  pushq %rdi\n  .cfi_adjust_cfa_offset 8\n"   \
      "  pushq %rsi\n  .cfi_adjust_cfa_offset 8\n"   \
      "  pushq %rdx\n  .cfi_adjust_cfa_offset 8\n"   \
      "  movq 24(%rsp), " caller_register            \
      "\n"                                           \
      "  call " question                             \
      "\n"                                           \
      "  movq %rdx, %r11\n"                          \
      "  popq %rdx\n  .cfi_adjust_cfa_offset -8\n"   \
      "  popq %rsi\n  .cfi_adjust_cfa_offset -8\n"   \
      "  popq %rdi\n  .cfi_adjust_cfa_offset -8\n"   \
      "  testq %rax, %rax\n"                         \
      "  jne 1f\n"                                   \
      "  jmpq *guard_real_" name                     \
      "(%rip)\n"                                     \
      "1:\n"                                         \
      "  movq %r11, %rax\n"                          \
      "  ret\n"                                      \
      ".cfi_endproc\n"                               \
      ".size " name ", . - " name "\n")
GUARD_ENTRY("dlsym", "guard_ask_dlsym", "%rdx");
GUARD_ENTRY("dlvsym", "guard_ask_dlvsym", "%rcx");

#if defined(__CET__)
// What -fcf-protection writes for compiled code: an object without it switches the protection off for the process.
asm(".pushsection .note.gnu.property, \"a\"\n"
    ".p2align 3\n"
    ".long 4, 16, 5\n.asciz \"GNU\"\n"
    ".long 0xc0000002, 4, 3, 0\n"
    ".popsection\n");
#endif

#elif defined(__aarch64__)

// Arguments x0, x1, x2; x30 holds the return address.
#define GUARD_ENTRY(name, question, caller_register)                             \
  asm(".text\n"                                                                  \
      ".globl " name                                                             \
      "\n"                                                                       \
      ".type " name                                                              \
      ", %function\n"                                                            \
      ".p2align 2\n" name                                                        \
      ":\n"                                                                      \
      ".cfi_startproc\n"                                                         \
      "  hint #34\n" /* bti c */                                                 \
      "  stp x29, x30, [sp, #-48]!\n"                                            \
      "  .cfi_def_cfa_offset 48\n  .cfi_offset 29, -48\n  .cfi_offset 30, -40\n" \
      "  mov x29, sp\n"                                                          \
      "  stp x0, x1, [sp, #16]\n"                                                \
      "  str x2, [sp, #32]\n"                                                    \
      "  mov " caller_register                                                   \
      ", x30\n"                                                                  \
      "  bl " question                                                           \
      "\n"                                                                       \
      "  mov x16, x0\n"                                                          \
      "  mov x17, x1\n"                                                          \
      "  ldp x0, x1, [sp, #16]\n"                                                \
      "  ldr x2, [sp, #32]\n"                                                    \
      "  ldp x29, x30, [sp], #48\n"                                              \
      "  .cfi_def_cfa_offset 0\n  .cfi_restore 29\n  .cfi_restore 30\n"          \
      "  cbnz x16, 1f\n"                                                         \
      "  adrp x16, guard_real_" name                                             \
      "\n"                                                                       \
      "  ldr x16, [x16, :lo12:guard_real_" name                                  \
      "]\n"                                                                      \
      "  br x16\n"                                                               \
      "1:\n"                                                                     \
      "  mov x0, x17\n"                                                          \
      "  ret\n"                                                                  \
      ".cfi_endproc\n"                                                           \
      ".size " name ", . - " name "\n")
GUARD_ENTRY("dlsym", "guard_ask_dlsym", "x2");
GUARD_ENTRY("dlvsym", "guard_ask_dlvsym", "x3");

#else
#error "the guard knows x86-64 and arm64"
#endif
