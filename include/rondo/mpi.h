/* SPDX-License-Identifier: MIT
 * Communicators from MPI (MM-1, MM-2). This header and its functions are the component rondo-mpi: the library
 * librondo_mpi.so, the CMake target rondo::mpi and the pkg-config package rondo-mpi. The component is built for one
 * MPI, the one that the program uses.
 *
 *   MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
 *   TRY(rondo_device_open("cpu", NULL, &device));
 *   TRY(rondo_communicator_from_mpi(device, MPI_COMM_WORLD, NULL, &communicator));
 *   TRY(rondo_all_reduce(communicator, stream, gradients, gradients, count, RONDO_F32, RONDO_REDUCE_SUM));
 *
 * On a CPU device, collectives are MPI's. Rondo starts non-blocking collectives and polls them. An all-reduce of 2, 4
 * or 8 ranks consists of MPI's sends and receives between pairs of ranks, which are faster for each size. Another small
 * collective, eager or captured (4 KiB with OpenMPI, 16 KiB with MPICH), is a persistent one where the MPI has them
 * (MPI 4, or MPIX_Allreduce_init and its kin of OpenMPI; not the all-gather of MPICH, which gathers old data): it is
 * made by the first call and started by each one. It is bound to addresses, and those of calls and replays differ, so
 * its data goes through buffers of the communicator, and collectives of one description (operation, type, reduction,
 * root and count) share it. On a CUDA device, collectives are NCCL's, and MPI only passes NCCL's id to the ranks.
 *
 * MPI must be initialized with MPI_THREAD_MULTIPLE, because workers and the progress thread call it. Destroy the
 * communicator, and all graphs and execs that captured its collectives, before MPI_Finalize. An exec that still runs is
 * freed when it is done, so synchronize the device between the two. After an MPI_Finalize that came too early,
 * collectives fail with INVALID_STATE; but if one was in progress, MPICH 4.0 may end the program.
 *
 * Checks. All ranks must call the same collectives (<rondo/collective.h>). The first collective of each description,
 * and every 256th, compare what the ranks called so far before any data moves, and fail on all ranks if it differs. An
 * all-reduce between pairs of ranks moves no data if both call another one, and a receive compares its type and count
 * with what was sent. When a collective waits long, the ranks ask each other how far they are. So differences are found
 * then too, and a timeout names the ranks that did not call the collective, and those that do not answer. With a
 * timeout_ms of less than half a second, there may be no time for answers, and the message says so.
 *
 * MPI's errors. MPICH reports an error of a request, such as a lost connection or a receive that is too small, to the
 * handler of MPI_COMM_WORLD, which ends the program by default: MPI_Comm_set_errhandler(MPI_COMM_WORLD,
 * MPI_ERRORS_RETURN) turns it into the error of the collective.
 *
 * After a failure, MPI may still access the buffers of the collective that was in progress, because MPI cannot cancel
 * it. End the process, or keep the buffers. If a rank was lost, MPI_Finalize may wait for it for ever, so end with
 * MPI_Abort, or without MPI_Finalize.
 *
 * Component: rondo-mpi.
 */
#ifndef RONDO_MPI_H
#define RONDO_MPI_H

#include <mpi.h>
#include <rondo/collective.h>

RONDO_EXTERN_C_BEGIN

/* Makes a communicator whose group is that of `communicator`, which may be freed afterwards. Each rank passes its own
 * device, all of one kind; on CUDA each rank has another GPU. All ranks call it; it waits for them at most
 * rondo_communicator_options.join_timeout_ms. options may be NULL. Errors: INVALID_ARGUMENT with NULL_ARGUMENT
 * (MPI_COMM_NULL too), BAD_OPTIONS, MISMATCH (another version of Rondo, another kind of device or another timeout on a
 * rank, which the message names; two ranks on one GPU); INVALID_STATE (MPI is not initialized, was initialized without
 * MPI_THREAD_MULTIPLE, or is finalized; an intercommunicator); UNAVAILABLE/TIMED_OUT (not all ranks called it);
 * OUT_OF_MEMORY; EXECUTION_FAILED with MPI's code; those of rondo_communicator_from_id on CUDA. A rank that fails by
 * itself after all have joined, as by BAD_OPTIONS on a CPU device, tells the others, whose next collective fails with
 * PEER_LOST. Thread-safe for different MPI communicators, as MPI's own collectives are; waits. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_from_mpi(rondo_device *device, MPI_Comm communicator,
                                                                  const rondo_communicator_options *options,
                                                                  rondo_communicator **out_communicator);

/* For programs that are compiled without MPI and load the component at run time with dlopen (RTLD_GLOBAL, because MPI's
 * own plugins look for its functions), as rondo train does. None of these functions has a type of MPI:
 *
 *   begin();                                       rondo_mpi_begin
 *   from_world(device, NULL, &communicator);       rondo_communicator_from_mpi_world
 *   ... destroy the communicator ...
 *   end();                                         rondo_mpi_end
 *
 * rondo_mpi_begin initializes MPI with MPI_THREAD_MULTIPLE, and lets MPI_COMM_WORLD return errors. If MPI is
 * initialized already, it only checks the thread level. All processes of the launcher call it; it waits for them. A
 * process that another MPI's launcher started is alone: compare the communicator's world_size. Errors: INVALID_STATE
 * as rondo_communicator_from_mpi; EXECUTION_FAILED with MPI's code. */
RONDO_API RONDO_MUST_USE rondo_status rondo_mpi_begin(void);

/* rondo_communicator_from_mpi of MPI_COMM_WORLD. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_from_mpi_world(rondo_device *device,
                                                                        const rondo_communicator_options *options,
                                                                        rondo_communicator **out_communicator);

/* MPI_Finalize. It may wait for a rank that was lost, so after such a failure call rondo_mpi_abort. Errors:
 * INVALID_STATE (MPI is not initialized, or is finalized already); EXECUTION_FAILED with MPI's code. */
RONDO_API RONDO_MUST_USE rondo_status rondo_mpi_end(void);

/* Ends all processes of MPI_COMM_WORLD with MPI_Abort, this one with the exit status. Does not return. While MPI is not
 * initialized, or after it was finalized, only this process ends. */
RONDO_API void rondo_mpi_abort(int exit_status);

RONDO_EXTERN_C_END

#endif
