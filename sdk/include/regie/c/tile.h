/* The tile program: kernel format "regie.tile/1", the byte format of programs for one AI Core.
 *
 * docs/tile.md says what the instructions mean, what is legal and what things cost. This header is the frozen
 * layout: little endian, no pointers, sections one after another without gaps. It is data, not an interface:
 * it carries its own version and takes part in no digest.
 *
 *   header | gm[gm_count] | instructions[instruction_count] | args[arg_count] | expressions[expression_count]
 *          | terms[term_count]
 *
 * An encoding is canonical: arguments in order of the instructions, expressions and terms in order of first
 * use, equal expressions stored once. A reader refuses every other order, so that equal programs are equal
 * bytes. */
#ifndef REGIE_C_TILE_H
#define REGIE_C_TILE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_TILE_FORMAT "regie.tile/1"
#define REGIE_TILE_MAGIC 0x4c544752u /* "RGTL" */
/* A program is of the first version that has all its instructions: readers of version 1 read what they ever
 * did. 2: REQUANT. */
#define REGIE_TILE_VERSION 2u

enum {
  REGIE_TILE_MAX_GM = 64,        /* global buffers of a program */
  REGIE_TILE_MAX_VARIABLES = 32, /* the core number and nested loops */
  REGIE_TILE_MAX_TERMS = 16,     /* of an expression */
  REGIE_TILE_MAX_ARGS = 24,      /* of an instruction */
  REGIE_TILE_MAX_CORES = 256,
  REGIE_TILE_MAX_INSTRUCTIONS = 65536, /* as written; loops multiply them */
  REGIE_TILE_FLAGS = 16,               /* flags of a pair of pipes */
  REGIE_TILE_FRACTAL_BYTES = 512,      /* 16 rows of 32 bytes */
  REGIE_TILE_BLOCK_BYTES = 32
};
#define REGIE_TILE_NUMBER_LIMIT ((int64_t)1 << 36) /* constants, bounds, divisors and moduli are smaller */
#define REGIE_TILE_FACTOR_LIMIT ((int64_t)1 << 34) /* factors are smaller */
#define REGIE_TILE_COUNT_LIMIT ((int64_t)1 << 24)  /* counts and trips at run time are smaller */

/* Places of a copy; global buffer i is REGIE_TILE_GM + i. */
enum {
  REGIE_TILE_L1 = 0,
  REGIE_TILE_L0A = 1,
  REGIE_TILE_L0B = 2,
  REGIE_TILE_L0C = 3,
  REGIE_TILE_UB = 4,
  REGIE_TILE_GM = 64
};

enum {
  REGIE_TILE_LOAD = 0,   /* GM -> L1, UB */
  REGIE_TILE_MOVE = 1,   /* L1 -> L0A, L0B, UB */
  REGIE_TILE_CUBE = 2,   /* L0A, L0B -> L0C */
  REGIE_TILE_VECTOR = 3, /* UB -> UB, L0C -> UB */
  REGIE_TILE_STORE = 4,  /* UB -> GM, L1 */
  REGIE_TILE_PIPES = 5
};

enum { REGIE_TILE_F16 = 0, REGIE_TILE_F32 = 1, REGIE_TILE_S32 = 2, REGIE_TILE_S8 = 3, REGIE_TILE_U8 = 4 };

enum {
  REGIE_TILE_OP_LOOP = 1,
  REGIE_TILE_OP_END = 2,
  REGIE_TILE_OP_SET = 3,
  REGIE_TILE_OP_WAIT = 4,
  REGIE_TILE_OP_BARRIER = 5,
  REGIE_TILE_OP_COPY = 6,
  REGIE_TILE_OP_FILL = 7,
  REGIE_TILE_OP_FRACTAL = 8,
  REGIE_TILE_OP_IM2COL = 9,
  REGIE_TILE_OP_MMAD = 10,
  REGIE_TILE_OP_DRAIN = 11,
  REGIE_TILE_OP_BINARY = 12,
  REGIE_TILE_OP_UNARY = 13,
  REGIE_TILE_OP_CAST = 14,
  REGIE_TILE_OP_COMPARE = 15,
  REGIE_TILE_OP_SELECT = 16,
  REGIE_TILE_OP_REDUCE = 17,
  REGIE_TILE_OP_TRANSPOSE = 18,
  REGIE_TILE_OP_REQUANT = 19 /* since version 2 */
};

/* Sub-operations. */
enum {
  REGIE_TILE_ADD = 0,
  REGIE_TILE_SUB = 1,
  REGIE_TILE_MUL = 2,
  REGIE_TILE_DIV = 3,
  REGIE_TILE_MAX = 4,
  REGIE_TILE_MIN = 5,
  REGIE_TILE_MLA = 6 /* dst += a * b */
};
enum {
  REGIE_TILE_COPY = 0,
  REGIE_TILE_EXP = 1,
  REGIE_TILE_LN = 2,
  REGIE_TILE_SQRT = 3,
  REGIE_TILE_RSQRT = 4,
  REGIE_TILE_REC = 5,
  REGIE_TILE_ABS = 6,
  REGIE_TILE_RELU = 7,
  REGIE_TILE_NEG = 8
};
enum {
  REGIE_TILE_LT = 0,
  REGIE_TILE_LE = 1,
  REGIE_TILE_GT = 2,
  REGIE_TILE_GE = 3,
  REGIE_TILE_EQ = 4,
  REGIE_TILE_NE = 5
};
enum { REGIE_TILE_SUM = 0, REGIE_TILE_ROW_MAX = 1, REGIE_TILE_ROW_MIN = 2 };
/* What the second operand is: as many elements as the first, one element a repeat, a constant. */
enum { REGIE_TILE_BY_VECTOR = 0, REGIE_TILE_BY_ROW = 1, REGIE_TILE_BY_SCALAR = 2 };
enum {
  REGIE_TILE_RINT = 0,
  REGIE_TILE_FLOOR = 1,
  REGIE_TILE_CEIL = 2,
  REGIE_TILE_TRUNC = 3,
  REGIE_TILE_AWAY = 4
};
/* Bytes of an element that a TRANSPOSE moves. */
enum { REGIE_TILE_B16 = 0, REGIE_TILE_B8 = 1, REGIE_TILE_B32 = 2 };

/* What a global buffer is bound to when the task is launched. */
enum {
  REGIE_TILE_OPERAND = 0,
  REGIE_TILE_RESULT = 1,
  REGIE_TILE_SCRATCH = 2 /* the launch's scratch, `index` is an offset into it in bytes */
};
enum { REGIE_TILE_READ = 1, REGIE_TILE_WRITE = 2 };

typedef struct regie_tile_header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint32_t checksum;              /* CRC-32 (as of zlib) of all bytes, these four taken as 0 */
  uint32_t cores;                 /* that run it: 1 .. REGIE_TILE_MAX_CORES; a device with fewer refuses it */
  uint32_t l1, l0a, l0b, l0c, ub; /* bytes that it was compiled for; a device with less refuses it */
  uint32_t c0;                    /* elements of two bytes in a block: 16 */
  uint32_t gm_count, instruction_count, arg_count, expression_count, term_count;
  uint32_t reserved; /* 0 */
} regie_tile_header;

typedef struct regie_tile_gm {
  uint64_t bytes;  /* that the program may touch; a launch with a smaller buffer is refused */
  uint64_t index;  /* of the operand or result; offset into the scratch, a multiple of 32 */
  uint16_t kind;   /* REGIE_TILE_OPERAND ... */
  uint16_t access; /* REGIE_TILE_READ | REGIE_TILE_WRITE */
  uint32_t reserved;
} regie_tile_gm;

typedef struct regie_tile_instruction {
  uint16_t op;
  uint8_t mode[4]; /* what they mean depends on op; 0 where unused */
  uint16_t args;   /* how many of the argument section, exactly as many as op has */
} regie_tile_instruction;

/* An argument is a uint32_t, the number of an expression. A LOOP's variable is mode[0]. */

/* clamp(low, high, constant + sum of terms) */
typedef struct regie_tile_expression {
  int64_t constant;
  int64_t low, high;   /* INT64_MIN, INT64_MAX: none */
  uint32_t first_term; /* 0 if there is none */
  uint32_t terms;
} regie_tile_expression;

/* factor * ((variable / divisor) mod modulus) */
typedef struct regie_tile_term {
  int64_t factor;  /* not 0 */
  int64_t divisor; /* at least 1 */
  int64_t modulus; /* 0: none; else at least 2 */
  uint32_t variable;
  uint32_t reserved;
} regie_tile_term;

#ifdef __cplusplus
}
static_assert(sizeof(regie_tile_header) == 64, "frozen");
static_assert(sizeof(regie_tile_gm) == 24, "frozen");
static_assert(sizeof(regie_tile_instruction) == 8, "frozen");
static_assert(sizeof(regie_tile_expression) == 32, "frozen");
static_assert(sizeof(regie_tile_term) == 32, "frozen");
#else
_Static_assert(sizeof(regie_tile_header) == 64, "frozen");
_Static_assert(sizeof(regie_tile_gm) == 24, "frozen");
_Static_assert(sizeof(regie_tile_instruction) == 8, "frozen");
_Static_assert(sizeof(regie_tile_expression) == 32, "frozen");
_Static_assert(sizeof(regie_tile_term) == 32, "frozen");
#endif
#endif
